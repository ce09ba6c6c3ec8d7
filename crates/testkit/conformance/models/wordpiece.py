"""WordPiece as BERT's uncased models use it: lower case without accents, words and punctuation apart, longest known pieces first."""
import unicodedata

import numpy as np


class WordPiece:
    """A tokenizer over the words of a `vocab.txt`, one a line."""

    def __init__(self, vocab):
        self.ids = {word: number for number, word in enumerate(vocab.read_text(encoding="utf-8").splitlines())}

    def words(self, text):
        plain = unicodedata.normalize("NFD", text.lower())
        spaced = "".join(
            f" {c} " if unicodedata.category(c).startswith(("P", "S")) else c
            for c in plain
            if unicodedata.category(c) != "Mn"
        )
        return spaced.split()

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if prefix + word[start:end] in self.ids), None)
            if end is None:
                return [self.ids["[UNK]"]]
            found.append(self.ids[prefix + word[start:end]])
            start = end
        return found

    def batch(self, texts, length=None):
        """The model's inputs for `texts`, padded to the longest, or cut and padded to `length` tokens."""
        rows = [[piece for word in self.words(text) for piece in self.pieces(word)] for text in texts]
        length = length or max(map(len, rows)) + 2
        ids = np.full((len(texts), length), self.ids["[PAD]"], np.int64)
        for row, pieces in enumerate(rows):
            tokens = [self.ids["[CLS]"], *pieces[: length - 2], self.ids["[SEP]"]]
            ids[row, : len(tokens)] = tokens
        mask = (ids != self.ids["[PAD]"]).astype(np.int64)
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

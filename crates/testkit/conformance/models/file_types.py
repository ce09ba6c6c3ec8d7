"""Magika's model by way of the magika package: the model's inputs for files, and the labels that the package gives them."""
import io
from pathlib import Path

import numpy as np
from magika import Magika
from magika.types.seekable import Seekable


class FileTypes:
    """The package, and some files of this project of several types."""

    def __init__(self, root):
        self.magika = Magika()
        named = ["crates/core/src/shape.rs", "crates/testkit/conformance/suite_digits.py", "Cargo.toml", "README.md",
                 ".ci/run", "crates/model/src/reader.rs", "Cargo.lock"]  # fmt: skip
        self.files = [Path(root) / name for name in named]

    def features(self, file):
        """The row of bytes that the package would hand its own session."""
        config = self.magika._model_config
        found = Magika._extract_features_from_seekable(
            Seekable(io.BytesIO(file.read_bytes())),
            config.beg_size,
            config.mid_size,
            config.end_size,
            config.padding_token,
            config.block_size,
            config.use_inputs_at_offsets,
        )
        return [*found.beg, *found.mid, *found.end]

    def batch(self, count):
        return np.array([self.features(file) for file in self.files[:count]], np.int32)

    def fault(self, scores):
        """What is wrong with the labels that follow from `scores` of the first files; None when all are the package's own."""
        for file, row in zip(self.files, scores):
            score, label = row.max(), self.magika._target_labels_space[int(row.argmax())]
            found, _ = self.magika._get_output_label_from_dl_label_and_score(label, score)
            expected = self.magika.identify_path(file).output.label
            if found != expected:
                return f"{file.name} is {expected}, found {found}"
        return None

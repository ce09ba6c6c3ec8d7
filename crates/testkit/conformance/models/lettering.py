"""Pictures of words for the text recognition models: letters of five by seven dots, drawn as large as asked."""
import numpy as np

# Each row of a letter is five bits.
LETTERS = {
    "A": "0E 11 11 1F 11 11 11",
    "E": "1F 10 10 1E 10 10 1F",
    "I": "0E 04 04 04 04 04 0E",
    "L": "10 10 10 10 10 10 1F",
    "N": "11 19 15 13 11 11 11",
    "O": "0E 11 11 11 11 11 0E",
    "R": "1E 11 11 1E 14 12 11",
    "S": "0F 10 10 0E 01 01 1E",
    "T": "1F 04 04 04 04 04 04",
    "U": "11 11 11 11 11 11 0E",
    "2": "0E 11 01 02 04 08 1F",
    "6": "06 08 10 1E 11 11 0E",
    " ": "00 00 00 00 00 00 00",
}


def dots(text):
    """The dots of `text` as zeros and ones, seven rows high, a column between letters."""
    columns = []
    for letter in text:
        rows = [int(row, 16) for row in LETTERS[letter].split()]
        columns += [[row >> (4 - column) & 1 for row in rows] for column in range(5)] + [[0] * 7]
    return np.array(columns[:-1], np.float32).T


def picture(text, height, width, seed):
    """A [3, height, width] picture of dark `text` on light ground with a little noise, values about -1 to 1."""
    drawn = dots(text)
    scale = max(1, min(height * 3 // (4 * 7), width * 9 // (10 * drawn.shape[1])))
    drawn = drawn.repeat(scale, axis=0).repeat(scale, axis=1)[:height, :width]
    page = np.full((height, width), 0.8, np.float32)
    top, left = (height - drawn.shape[0]) // 2, (width - drawn.shape[1]) // 2
    page[top : top + drawn.shape[0], left : left + drawn.shape[1]] -= 1.6 * drawn
    noise = 0.05 * np.random.default_rng(seed).standard_normal((3, height, width)).astype(np.float32)
    return page[None] + noise


def batch(texts, height, width):
    return np.stack([picture(text, height, width, seed) for seed, text in enumerate(texts)])

"""Writes what onnxruntime answers for fixed inputs, for tests that compare insula's engine without Python.

Usage: python examples/write_references.py    (packages: examples/requirements.txt; after train_digits.py and write_test_models.py)

The layout of the files is described in test/reference/README.md.
"""

from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parent
REFERENCE = ROOT / "test/reference"
DIGITS_ROWS = 64
SLOW_ROWS = 8


def main() -> None:
    images = np.fromfile(ROOT / "digits/heldout_images.u8", np.uint8).reshape(-1, 1, 8, 8)[:DIGITS_ROWS]
    probabilities = answer(ROOT / "models/digits/1/model.onnx", "probabilities", {"image": images.astype(np.float32)})
    probabilities.astype("<f4").tofile(REFERENCE / "digits_probabilities.f32")

    values = (np.arange(SLOW_ROWS * 16) % 97 - 48).astype(np.float32).reshape(SLOW_ROWS, 16)
    answer(ROOT / "test/models/slow/1/model.onnx", "OUTPUT0", {"INPUT0": values}).astype("<f4").tofile(REFERENCE / "slow_output.f32")


def answer(model: Path, output: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """One output of a model, computed on one thread so that sums always run in the same order."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run([output], inputs)[0]


if __name__ == "__main__":
    REFERENCE.mkdir(parents=True, exist_ok=True)
    main()

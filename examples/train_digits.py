"""Trains the digit classifier of the example catalog and writes everything that comes from it.

Usage: python examples/train_digits.py    (packages: examples/requirements.txt; about twenty seconds on one core)

Writes models/digits/1/model.onnx, models/digits/README.md and, in digits/, the held-out images and labels, one image of
each digit as PNG, and request bodies. Ends with an error if the exported file is right on less than 98.5 % of the held-out images.

The run is seeded and uses one BLAS thread, so two runs with the same packages on the same kind of CPU write the same bytes. A CPU
with other vector instructions may round some sums otherwise and so end with slightly different weights.
"""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when numpy is imported; more threads would sum in another order

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from digits_network import Adam, DigitNetwork, softmax

ROOT = Path(__file__).resolve().parent
MODEL = ROOT / "models/digits"
DATA = ROOT / "digits"
SEED = 20261201
EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY, LABEL_SMOOTHING = 60, 64, 3e-3, 1e-2, 0.05
HELD_OUT, REQUIRED_ACCURACY = 0.2, 0.985


def main() -> None:
    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.images.astype(np.uint8), digits.target, test_size=HELD_OUT, stratify=digits.target, random_state=SEED
    )
    network = train(train_x, train_y)
    export(network, MODEL / "1/model.onnx")
    answers, probabilities = run_exported(MODEL / "1/model.onnx", test_x)
    right = answers == test_y
    print(f"held-out accuracy of the exported file: {right.sum()} of {len(right)} = {100 * right.mean():.2f} %")
    if right.mean() < REQUIRED_ACCURACY:
        raise SystemExit(f"the model is right on {right.mean():.2%} of the held-out images, {REQUIRED_ACCURACY:.1%} is required")
    write_model_card(len(train_y), test_y, answers, probabilities)
    write_held_out(test_x, test_y)
    write_images_and_requests(test_x, test_y, right)


# ---- training ----


def train(images: np.ndarray, labels: np.ndarray) -> DigitNetwork:
    rng = np.random.default_rng(SEED)
    network = DigitNetwork(rng)
    adam = Adam(network, WEIGHT_DECAY)
    x = images[:, None].astype(np.float32) / 16
    batches = -(-len(x) // BATCH)
    for epoch in range(EPOCHS):
        order, loss = rng.permutation(len(x)), 0.0
        for i in range(batches):
            rows = order[i * BATCH : (i + 1) * BATCH]
            loss += descend(network, adam, shifted(x[rows], rng), labels[rows], cosine(epoch * batches + i, EPOCHS * batches))
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: mean training loss {loss / batches:.4f}")
    return network


def descend(network: DigitNetwork, adam: Adam, x: np.ndarray, labels: np.ndarray, learning_rate: float) -> float:
    """One step on one batch by cross-entropy with smoothed labels; returns the loss before the step."""
    target = np.full((len(x), 10), LABEL_SMOOTHING / 10, np.float32)
    target[np.arange(len(x)), labels] += 1 - LABEL_SMOOTHING
    probabilities = softmax(network.forward(x, training=True))
    network.backward((probabilities - target) / np.float32(len(x)))
    adam.step(learning_rate)
    return float(-(target * np.log(probabilities + 1e-12)).sum(axis=1).mean())


def shifted(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half of the images moved by one pixel up or down and left or right, or along one of the two; zeros come in."""
    moves = rng.integers(-1, 2, (len(x), 2)) * (rng.random((len(x), 1)) < 0.5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.stack([padded[i, :, 1 + dy : 9 + dy, 1 + dx : 9 + dx] for i, (dy, dx) in enumerate(moves)])


def cosine(step: int, steps: int) -> float:
    return LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / steps))


# ---- export ----


def export(network: DigitNetwork, path: Path) -> None:
    node = helper.make_node
    conv = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1]}
    norm1 = ["norm1.scale", "norm1.bias", "norm1.mean", "norm1.variance"]
    norm2 = ["norm2.scale", "norm2.bias", "norm2.mean", "norm2.variance"]
    nodes = [
        node("Mul", ["image", "input.scale"], ["scaled"], "scale"),
        node("Conv", ["scaled", "conv1.weight"], ["conv1.out"], "conv1", **conv),
        node("BatchNormalization", ["conv1.out", *norm1], ["norm1.out"], "norm1", epsilon=network.norm1.epsilon),
        node("Relu", ["norm1.out"], ["relu1.out"], "relu1"),
        node("Conv", ["relu1.out", "conv2.weight"], ["conv2.out"], "conv2", **conv),
        node("BatchNormalization", ["conv2.out", *norm2], ["norm2.out"], "norm2", epsilon=network.norm2.epsilon),
        node("Relu", ["norm2.out"], ["relu2.out"], "relu2"),
        node("MaxPool", ["relu2.out"], ["pool.out"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["pool.out"], ["flat"], "flatten", axis=1),
        node("Gemm", ["flat", "dense1.weight", "dense1.bias"], ["dense1.out"], "dense1", transB=1),
        node("Relu", ["dense1.out"], ["relu3.out"], "relu3"),
        node("Gemm", ["relu3.out", "dense2.weight", "dense2.bias"], ["logits"], "dense2", transB=1),
        node("Softmax", ["logits"], ["probabilities"], "softmax", axis=1),
        node("ArgMax", ["probabilities"], ["digit"], "argmax", axis=1, keepdims=0),
    ]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])]
    outputs = [
        helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10]),
        helper.make_tensor_value_info("digit", TensorProto.INT64, ["batch"]),
    ]
    constants = [numpy_helper.from_array(v, name) for name, v in constants_of(network).items()]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="insula-examples")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def constants_of(network: DigitNetwork) -> dict[str, np.ndarray]:
    constants = {"input.scale": np.array(1 / 16, np.float32)}
    for name in ("conv1", "norm1", "conv2", "norm2", "dense1", "dense2"):
        layer = getattr(network, name)
        constants |= {f"{name}.{k}": v for k, v in layer.params.items()}
        if name.startswith("norm"):
            constants |= {f"{name}.mean": layer.mean, f"{name}.variance": layer.variance}
    return constants


def run_exported(path: Path, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The digits and the probabilities that onnxruntime gives for the file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    probabilities, digit = session.run(["probabilities", "digit"], {"image": images[:, None].astype(np.float32)})
    return digit, probabilities


# ---- what is written beside the model ----


def write_held_out(images: np.ndarray, labels: np.ndarray) -> None:
    DATA.mkdir(exist_ok=True)
    (DATA / "heldout_images.u8").write_bytes(images.tobytes())
    (DATA / "heldout_labels.u8").write_bytes(labels.astype(np.uint8).tobytes())


def write_images_and_requests(images: np.ndarray, labels: np.ndarray, right: np.ndarray) -> None:
    """For each digit the first held-out image that the model gets right: as PNG, and in requests."""
    folder = DATA / "images"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    chosen = [int(np.flatnonzero((labels == digit) & right)[0]) for digit in range(10)]
    lines = ["file\tlabel\theld_out_index\n"]
    for digit, index in enumerate(chosen):
        name = f"{digit}_{index}.png"
        (folder / name).write_bytes(png(images[index]))
        lines.append(f"{name}\t{digit}\t{index}\n")
    (folder / "labels.tsv").write_text("".join(lines))
    (DATA / "seven.json").write_text(infer_request("seven", images[chosen[7:8]]))
    (DATA / "all_digits.json").write_text(infer_request("all digits", images[chosen]))


def png(image: np.ndarray) -> bytes:
    """An 8-bit greyscale PNG. Pixels are value * 255 / 16, rounded half up; value = round(pixel * 16 / 255) takes it back.

    The image is stored, not compressed, so that the bytes do not depend on the zlib at hand.
    """
    pixels = ((image.astype(np.uint16) * 255 + 8) // 16).astype(np.uint8)
    height, width = pixels.shape

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def infer_request(request_id: str, images: np.ndarray) -> str:
    """An Open Inference Protocol v2 request, laid out so that a person can see the digits: one row of an image a line."""
    indent = " " * 8
    grids = [(",\n" + indent).join(", ".join(f"{value:2d}" for value in row) for row in image) for image in images]
    data = (",\n\n" + indent).join(grids)
    shape = json.dumps([len(images), 1, 8, 8])
    return f"""{{
  "id": {json.dumps(request_id)},
  "inputs": [
    {{
      "name": "image",
      "shape": {shape},
      "datatype": "FP32",
      "data": [
{indent}{data}
      ]
    }}
  ]
}}
"""


def write_model_card(trained_on: int, labels: np.ndarray, answers: np.ndarray, probabilities: np.ndarray) -> None:
    right = answers == labels
    wrong = [f"{i} ({labels[i]} read as {answers[i]})" for i in np.flatnonzero(~right)]
    surest = probabilities.max(axis=1)
    card = f"""# digits

Reads one handwritten digit. Written by `examples/train_digits.py`; do not edit by hand.

| | |
|---|---|
| input | `image`, FP32 `[batch, 1, 8, 8]`, values 0 (paper) to 16 (ink); the scaling to 0..1 is in the graph |
| outputs | `probabilities`, FP32 `[batch, 10]`, and `digit`, INT64 `[batch]`, the index of the largest |
| network | 2 x (3x3 convolution, batch normalisation, ReLU) with 16 and 32 channels, 2x2 max pooling, dense 64, ReLU, dense 10, softmax |
| training | {trained_on:,} images, {EPOCHS} epochs of Adam, half of the images shifted by a pixel, dropout 0.3, label smoothing {LABEL_SMOOTHING}, seed {SEED} |
| **held-out accuracy** | **{right.sum()} of {len(right)} = {100 * right.mean():.2f} %** (stratified split, {100 * HELD_OUT:.0f} % held out), measured with onnxruntime on the exported file |
| mean largest probability | {surest[right].mean():.3f} where right{f", {surest[~right].mean():.3f} where wrong" if wrong else ""} |
| wrong, by held-out index | {", ".join(wrong) or "none"} |
| file | ONNX opset 17, FP32, batch normalisation left unfolded |

Data: the 1,797 images of scikit-learn's `load_digits`, a copy of the test set of "Optical Recognition of Handwritten Digits"
(E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998; CC BY 4.0).

Limits: the 13 people who wrote these digits are on both sides of the split, so expect less from other hands. Anything that is not
one centred digit drawn as in `examples/digits/` still gets some digit as its answer.
"""
    (MODEL / "README.md").write_text(card)


if __name__ == "__main__":
    main()

"""Writes the models that insula's tests load: test/models/NAME/VERSION/model.onnx (what each is for: test/models/README.md).

Usage: python examples/write_test_models.py    (packages: examples/requirements.txt; a second)

Nothing here is random or rounded: every weight is a power of two with a sign, so the files are the same bytes on every machine.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MODELS = Path(__file__).resolve().parent / "test/models"

SLOW_COLUMNS = 16  # values in a row, as in identity_fp32
SLOW_POSITIONS = 512  # copies of a row, each scaled differently, that go through the chain of products
SLOW_WIDTH = 128
SLOW_PRODUCTS = 80  # a multiple of 4, so that the scales of turn.a and turn.b cancel


def main() -> None:
    write("identity_fp32", 1, identity(TensorProto.FLOAT, 16))
    write("identity_fp16", 1, identity(TensorProto.FLOAT16, 4))
    write("identity_int64", 1, identity(TensorProto.INT64, 4))
    write("identity_bytes", 1, identity(TensorProto.STRING, 2))
    write("versions", 1, identity(TensorProto.FLOAT, 4))
    for version in (2, 10):
        write("versions", version, times(version, 4))
    write("slow", 1, slow())


def write(name: str, version: int, graph: onnx.GraphProto) -> None:
    graph.name = name
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="insula-examples")
    model.ir_version = 8
    onnx.checker.check_model(model, full_check=True)
    path = MODELS / name / str(version) / "model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def graph_of(nodes: list, element_type: int, columns: int, constants: dict[str, np.ndarray]) -> onnx.GraphProto:
    """A graph from INPUT0 to OUTPUT0, both [batch, columns]."""
    inputs = [helper.make_tensor_value_info("INPUT0", element_type, ["batch", columns])]
    outputs = [helper.make_tensor_value_info("OUTPUT0", element_type, ["batch", columns])]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    return helper.make_graph(nodes, "unnamed", inputs, outputs, tensors)


def identity(element_type: int, columns: int) -> onnx.GraphProto:
    return graph_of([helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"], "identity")], element_type, columns, {})


def times(factor: float, columns: int) -> onnx.GraphProto:
    node = helper.make_node("Mul", ["INPUT0", "factor"], ["OUTPUT0"], "times")
    return graph_of([node], TensorProto.FLOAT, columns, {"factor": np.array(factor, np.float32)})


def slow() -> onnx.GraphProto:
    """The identity the long way: 1.35 GFLOP a row.

    A row is copied to 512 positions, each scaled by its own factor (0.5 to 1.5, mean 1), widened from 16 to 128 values, taken
    through 40 products and then through their inverses in reverse order, narrowed, and averaged over the positions. All
    matrices are orthogonal up to a scale, and the scales cancel, so values never grow and the answer is the input but for rounding.
    """
    node = helper.make_node
    chain = (["turn.a", "turn.b"] * SLOW_PRODUCTS)[: SLOW_PRODUCTS // 2]
    chain += [f"{name}.back" for name in reversed(chain)]
    nodes = [
        node("Unsqueeze", ["INPUT0", "position.axis"], ["row"], "unsqueeze"),
        node("Mul", ["row", "position.scale"], ["spread"], "spread"),
        node("MatMul", ["spread", "widen"], ["wide.0"], "widen"),
    ]
    for i, matrix in enumerate(chain):
        nodes.append(node("MatMul", [f"wide.{i}", matrix], [f"wide.{i + 1}"], f"product.{i}"))
    nodes += [
        node("MatMul", [f"wide.{len(chain)}", "narrow"], ["narrowed"], "narrow"),
        node("ReduceMean", ["narrowed"], ["OUTPUT0"], "mean", axes=[1], keepdims=0),
    ]
    return graph_of(nodes, TensorProto.FLOAT, SLOW_COLUMNS, slow_constants())


def slow_constants() -> dict[str, np.ndarray]:
    """H is Hadamard's matrix of order 128, H H^T = 128 I; S and T flip signs.

    a = S H / 8 and b = T H / 16: a a^T = 2 I, b b^T = I / 2. 40 products with a and b in turn, then with their transposes in
    reverse order, multiply to 2^20 / 2^20 I = I. widen = 16 rows of H / 8 and narrow = widen^T / 2: widen narrow = I.
    """
    h = hadamard(SLOW_WIDTH)
    a = signs(1)[:, None] * h / 8
    b = signs(3)[:, None] * h / 16
    widen = h[1 : 1 + SLOW_COLUMNS] / 8
    # 512 factors with a mean of exactly 1: 0.5 + 1/1024, then up by 1/512; exact in half precision too.
    scale = 0.5 + (np.arange(SLOW_POSITIONS) + 0.5) / SLOW_POSITIONS
    constants = {
        "position.scale": scale.reshape(1, SLOW_POSITIONS, 1),
        "widen": widen,
        "turn.a": a,
        "turn.b": b,
        "turn.b.back": b.T,
        "turn.a.back": a.T,
        "narrow": widen.T / 2,
    }
    floats = {name: np.ascontiguousarray(value, np.float32) for name, value in constants.items()}
    return {"position.axis": np.array([1], np.int64)} | floats


def hadamard(order: int) -> np.ndarray:
    """Sylvester's construction: entry (i, j) is -1 to the number of ones that i and j share in binary."""
    i = np.arange(order)
    return np.where(np.bitwise_count(i[:, None] & i[None, :]) % 2, -1.0, 1.0)


def signs(first: int) -> np.ndarray:
    """128 signs without a pattern that H has: whether `first`, `first` + 1, ... are quadratic residues of a prime."""
    prime = 131
    residues = {x * x % prime for x in range(1, prime)}
    return np.array([1.0 if first + i in residues else -1.0 for i in range(SLOW_WIDTH)])


if __name__ == "__main__":
    main()

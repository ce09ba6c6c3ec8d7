"""The ONNX node tests as plain files, for the runner `onnx_node_tests` (crates/testkit/src/node_tests.rs).

Usage: onnx_node_cases.py OUT. Writes OUT/CASE/model.onnx and one file of raw little-endian bytes for each input and output of
every case that the `onnx` package makes, and OUT/index.txt, which says what they hold and which cases are out of scope.
"""
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

warnings.filterwarnings("ignore")
from onnx.backend.test.case.node import collect_testcases  # noqa: E402 (it warns while it is imported)

# The protocol's names; other types keep ONNX's name, which the runner takes as not supported.
PROTOCOL_TYPES = {
    TensorProto.BOOL: "BOOL",
    TensorProto.UINT8: "UINT8",
    TensorProto.UINT16: "UINT16",
    TensorProto.UINT32: "UINT32",
    TensorProto.UINT64: "UINT64",
    TensorProto.INT8: "INT8",
    TensorProto.INT16: "INT16",
    TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64",
    TensorProto.FLOAT16: "FP16",
    TensorProto.BFLOAT16: "BF16",
    TensorProto.FLOAT: "FP32",
    TensorProto.DOUBLE: "FP64",
}
RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}


def all_nodes(nodes):
    """The nodes, and those of the graphs in their attributes."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            graphs = [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
            for graph in graphs:
                yield from all_nodes(graph.node)


def nodes_of(model):
    yield from all_nodes(model.graph.node)
    for function in model.functions:
        yield from all_nodes(function.node)


def category(model):
    """Why the case is out of scope: the first of these that applies; None when it is in scope."""
    nodes = list(nodes_of(model))
    operators = {node.op_type for node in nodes}
    domains = {node.domain for node in nodes}
    values = list(model.graph.input) + list(model.graph.output)
    kinds = {value.type.WhichOneof("value") for value in values}
    strings = any(value.type.tensor_type.elem_type == TensorProto.STRING for value in values)
    rules = [
        ("sequence", "sequence_type" in kinds or any("Sequence" in operator for operator in operators)),
        ("optional", "optional_type" in kinds or any("Optional" in operator for operator in operators)),
        ("map", "map_type" in kinds),
        ("string", strings or any(operator.startswith("String") for operator in operators)),
        ("ai.onnx.ml", "ai.onnx.ml" in domains),
        ("training", any(domain.startswith("ai.onnx.preview.training") or domain == "ai.onnx.training" for domain in domains)),
        ("random", bool(operators & RANDOM)),
        ("image decoding", "ImageDecoder" in operators),
        ("Loop", "Loop" in operators),
        ("Scan", "Scan" in operators),
    ]
    return next((name for name, applies in rules if applies), None)


def little_endian(data):
    array = numpy_helper.to_array(data) if isinstance(data, TensorProto) else np.asarray(data)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    return array.shape, np.ascontiguousarray(array).tobytes()


def write_tensors(folder, word, declared, tensors):
    """Writes one side of a data set; gives its lines of the index."""
    if len(declared) != len(tensors):
        raise SystemExit(f"{folder.name} declares {len(declared)} {word}s and has data for {len(tensors)}")
    lines = []
    for number, (value, data) in enumerate(zip(declared, tensors)):
        element = value.type.tensor_type.elem_type
        dtype = PROTOCOL_TYPES.get(element, TensorProto.DataType.Name(element))
        shape, raw = little_endian(data)
        file = f"{word}_{number}.bin"
        (folder / file).write_bytes(raw)
        lines.append(f"{word} {value.name} {dtype} [{','.join(map(str, shape))}] {file}")
    return lines


def write_case(out, case):
    """Writes the case's files; gives its lines of the index."""
    folder = out / case.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    lines = [f"case {case.name}"]
    excluded = category(case.model)
    if excluded:
        return lines + [f"excluded {excluded}"]
    operators = sorted({node.op_type for node in nodes_of(case.model)})
    lines += [f"tolerance {case.rtol} {case.atol}", f"operators {' '.join(operators)}"]
    if len(case.data_sets) != 1:
        raise SystemExit(f"{case.name} has {len(case.data_sets)} data sets, expected one")
    inputs, outputs = case.data_sets[0]
    lines += write_tensors(folder, "input", case.model.graph.input, inputs)
    return lines + write_tensors(folder, "output", case.model.graph.output, outputs)


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    cases = sorted(collect_testcases(None), key=lambda case: case.name)
    lines = [f"onnx {onnx.__version__}"]
    for case in cases:
        lines += write_case(out, case)
    # the index comes last: where it stands, the cases are whole
    (out / "index.txt").write_text("\n".join(lines) + "\n")
    print(f"{len(cases)} cases written to {out}")


if __name__ == "__main__":
    main()

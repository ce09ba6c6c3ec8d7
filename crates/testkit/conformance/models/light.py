"""The topologies in the onnx wheel (backend/test/data/light) with seeded weights in place of their constant ones.

Weights are He's, so that activations keep their scale; batch normalisations vary around the identity, and those at the end of a
residual branch are halved so that sums do not grow. Scores are scaled by one run of onnxruntime to a spread that makes a
softmax say something. The same seed gives the same file.
"""
import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

SCORE_SPREAD = 2.0


def constant_shapes(graph):
    """The shapes of what ConstantOfShape nodes and float initializers hold, by name."""
    stored = {tensor.name: tensor for tensor in graph.initializer}
    shapes = {name: list(tensor.dims) for name, tensor in stored.items() if tensor.data_type == onnx.TensorProto.FLOAT}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            shapes[node.output[0]] = numpy_helper.to_array(stored[node.input[0]]).tolist()
    return shapes


def reshaped_constants(graph, shapes):
    """The constants behind Unsqueeze and Reshape nodes, by what these write."""
    reshaping = [node for node in graph.node if node.op_type in ("Unsqueeze", "Reshape")]
    return {node.output[0]: node.input[0] for node in reshaping if node.input[0] in shapes}


class Weights:
    """Draws the constants of a graph by the part that each plays in it."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.drawn = {}

    def near(self, name, shape, centre, spread):
        self.drawn[name] = (centre + spread * self.random.uniform(-1, 1, shape)).astype(np.float32)

    def he(self, name, shape):
        rows = next(size for size in shape if size > 1)
        fan_in = int(np.prod(shape)) // rows
        drawn = self.random.standard_normal((rows, fan_in), np.float32)
        # filters that sum to zero look at differences: otherwise what all inputs have in common drowns the rest
        drawn -= drawn.mean(axis=1, keepdims=True)
        self.drawn[name] = (drawn * np.float32(np.sqrt(2 / fan_in))).reshape(shape)

    def draw(self, node, shapes, sources, summed):
        inputs = [sources.get(name, name) for name in node.input]
        if node.op_type in ("Conv", "Gemm"):
            self.he(inputs[1], shapes[inputs[1]])
            if len(inputs) > 2:
                self.near(inputs[2], shapes[inputs[2]], 0, 0.1)
        elif node.op_type == "BatchNormalization":
            centre = 0.5 if node.output[0] in summed else 1.0
            for name, (middle, spread) in zip(inputs[1:], [(centre, 0.2), (0, 0.2), (0, 0.2), (1, 0.3)]):
                self.near(name, shapes[name], middle, spread)
        elif node.op_type in ("Mul", "Add") and inputs[1] in shapes:
            # a scale or shift of channels
            self.near(inputs[1], shapes[inputs[1]], 1.0 if node.op_type == "Mul" else 0.0, 0.2)


def with_weights(model, seed):
    """Puts drawn constants in the place of ConstantOfShape nodes and of the inputs that older files list them as."""
    graph = model.graph
    shapes, weights = constant_shapes(graph), Weights(seed)
    sources = reshaped_constants(graph, shapes)
    summed = {name for node in graph.node if node.op_type == "Sum" for name in node.input}
    for node in graph.node:
        weights.draw(node, shapes, sources, summed)
    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in kept for name in node.input}
    lacking = sorted(name for name in used & set(shapes) if name not in weights.drawn)
    if lacking:
        raise SystemExit(f"no weights were drawn for {lacking[:5]}")
    others = [tensor for tensor in graph.initializer if tensor.name in used and tensor.name not in weights.drawn]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.drawn.items()] + others
    names = {tensor.name for tensor in constants}
    inputs = [value for value in graph.input if value.name in used and value.name not in names]
    for field, values in (("node", kept), ("initializer", constants), ("input", inputs)):
        graph.ClearField(field)
        getattr(graph, field).extend(values)


def scores_node(graph):
    """The last product or convolution: what the scores come from."""
    return [node for node in graph.node if node.op_type in ("Gemm", "Conv")][-1]


def scale_scores(model, feed):
    """Scales the last layer so that the scores of `feed` spread by SCORE_SPREAD."""
    last = scores_node(model.graph)
    sources = reshaped_constants(model.graph, {tensor.name for tensor in model.graph.initializer})
    constants = {sources.get(name, name) for name in last.input[1:]}
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    probe.graph.output.append(onnx.helper.make_empty_tensor_value_info(last.output[0]))
    session = onnxruntime.InferenceSession(probe.SerializeToString(), providers=["CPUExecutionProvider"])
    (scores,) = session.run([last.output[0]], feed)
    # a global pooling behind the last convolution comes first
    spread = scores.reshape(1, 1000, -1).mean(axis=2).std()
    for tensor in model.graph.initializer:
        if tensor.name in constants:
            scaled = (numpy_helper.to_array(tensor) * (SCORE_SPREAD / spread)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))


def image_feed(name, batch, seed):
    """Smooth noise of unit spread: pictures are smooth, and plain noise averages out in the poolings."""
    coarse = np.random.default_rng(seed).standard_normal((batch, 3, 14, 14)).astype(np.float32)
    fine = np.random.default_rng(seed + 1).standard_normal((batch, 3, 224, 224)).astype(np.float32)
    return {name: coarse.repeat(16, axis=2).repeat(16, axis=3) + 0.3 * fine}


def count_rows(model):
    """Makes dimension 0 symbolic, in the inputs, the outputs and the shape before the last layer."""
    graph = model.graph
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for tensor in graph.initializer:
        if tensor.name in shapes:
            rest = numpy_helper.to_array(tensor)[1:]
            tensor.CopyFrom(numpy_helper.from_array(np.array([-1, *rest], np.int64), tensor.name))


def write(topology, path, seed=7, rows=False):
    """Writes the file of `topology` with weights; with `rows` for any number of images."""
    model = onnx.load(str(topology))
    with_weights(model, seed)
    feed = image_feed(model.graph.input[0].name, 1, seed)
    scale_scores(model, feed)
    if rows:
        count_rows(model)
    onnx.save(model, str(path))

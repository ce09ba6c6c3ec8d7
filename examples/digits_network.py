"""The digit classifier in plain numpy: its layers, how each is run and how each is differentiated.

Images are NCHW float32. A layer's `forward` keeps what its `backward` needs; `backward` takes the gradient of the loss by
the layer's output, stores the gradients of the parameters in `grads`, and returns the gradient by the layer's input.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


class Layer:
    """A layer without parameters that passes its input on; the others replace what differs."""

    def __init__(self):
        self.params: dict[str, np.ndarray] = {}
        self.grads: dict[str, np.ndarray] = {}

    def forward(self, x: np.ndarray, training: bool) -> np.ndarray:
        return x

    def backward(self, dy: np.ndarray) -> np.ndarray:
        return dy


class Conv3x3(Layer):
    """A 3x3 convolution with one pixel of zero padding and no bias (a batch normalisation follows and would cancel it)."""

    def __init__(self, c_in: int, c_out: int, rng: np.random.Generator):
        super().__init__()
        self.params["weight"] = he_normal(rng, (c_out, c_in, 3, 3), fan_in=c_in * 9)

    def forward(self, x, training):
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        patches = sliding_window_view(padded, (3, 3), axis=(2, 3))
        self.columns = patches.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, c * 9)
        self.in_shape = x.shape
        weight = self.params["weight"]
        y = self.columns @ weight.reshape(len(weight), -1).T
        return y.reshape(n, h, w, -1).transpose(0, 3, 1, 2)

    def backward(self, dy):
        n, c, h, w = self.in_shape
        weight = self.params["weight"]
        flat = dy.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.grads["weight"] = (flat.T @ self.columns).reshape(weight.shape)
        d_columns = (flat @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, 3, 3)
        d_padded = np.zeros((n, c, h + 2, w + 2), np.float32)
        for i in range(3):
            for j in range(3):
                d_padded[:, :, i : i + h, j : j + w] += d_columns[..., i, j].transpose(0, 3, 1, 2)
        return d_padded[:, :, 1:-1, 1:-1]


class BatchNorm(Layer):
    """Batch normalisation by channel. Training uses the batch's statistics and keeps their moving averages for inference."""

    epsilon = 1e-5
    momentum = 0.9

    def __init__(self, channels: int):
        super().__init__()
        self.params["scale"] = np.ones(channels, np.float32)
        self.params["bias"] = np.zeros(channels, np.float32)
        self.mean = np.zeros(channels, np.float32)
        self.variance = np.ones(channels, np.float32)

    def forward(self, x, training):
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3))
            keep, take = np.float32(self.momentum), np.float32(1 - self.momentum)
            self.mean = keep * self.mean + take * mean
            self.variance = keep * self.variance + take * variance
        self.inverse_std = 1 / np.sqrt(variance + np.float32(self.epsilon))
        self.normalised = (x - by_channel(mean)) * by_channel(self.inverse_std)
        return self.normalised * by_channel(self.params["scale"]) + by_channel(self.params["bias"])

    def backward(self, dy):
        count = np.float32(dy.size // dy.shape[1])
        d_bias = dy.sum(axis=(0, 2, 3))
        d_scale = (dy * self.normalised).sum(axis=(0, 2, 3))
        self.grads.update(scale=d_scale, bias=d_bias)
        centred = dy - by_channel(d_bias / count) - self.normalised * by_channel(d_scale / count)
        return centred * by_channel(self.params["scale"] * self.inverse_std)


class Relu(Layer):
    def forward(self, x, training):
        self.positive = x > 0
        return np.where(self.positive, x, np.float32(0))

    def backward(self, dy):
        return np.where(self.positive, dy, np.float32(0))


class MaxPool2x2(Layer):
    """The largest of each 2x2 block; the gradient goes to the first of equals."""

    def forward(self, x, training):
        n, c, h, w = x.shape
        blocks = x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // 2, w // 2, 4)
        self.winner = blocks.argmax(axis=-1)[..., None]
        return np.take_along_axis(blocks, self.winner, axis=-1)[..., 0]

    def backward(self, dy):
        n, c, h, w = dy.shape
        blocks = np.zeros((n, c, h, w, 4), np.float32)
        np.put_along_axis(blocks, self.winner, dy[..., None], axis=-1)
        return blocks.reshape(n, c, h, w, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h * 2, w * 2)


class Flatten(Layer):
    def forward(self, x, training):
        self.in_shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, dy):
        return dy.reshape(self.in_shape)


class Dropout(Layer):
    """Zeroes each value with probability `rate` while training and scales the others up; does nothing at inference."""

    def __init__(self, rate: float, rng: np.random.Generator):
        super().__init__()
        self.rate, self.rng = np.float32(rate), rng

    def forward(self, x, training):
        if not training:
            return x
        self.mask = (self.rng.random(x.shape, np.float32) >= self.rate) / (1 - self.rate)
        return x * self.mask

    def backward(self, dy):
        return dy * self.mask


class Dense(Layer):
    """x W^T + b, with the weight stored [outputs, inputs]."""

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator):
        super().__init__()
        self.params["weight"] = he_normal(rng, (outputs, inputs), fan_in=inputs)
        self.params["bias"] = np.zeros(outputs, np.float32)

    def forward(self, x, training):
        self.x = x
        return x @ self.params["weight"].T + self.params["bias"]

    def backward(self, dy):
        self.grads.update(weight=dy.T @ self.x, bias=dy.sum(axis=0))
        return dy @ self.params["weight"]


class DigitNetwork:
    """[n, 1, 8, 8] images with values 0..1 -> [n, 10] logits."""

    def __init__(self, rng: np.random.Generator):
        self.conv1, self.norm1 = Conv3x3(1, 16, rng), BatchNorm(16)
        self.conv2, self.norm2 = Conv3x3(16, 32, rng), BatchNorm(32)
        self.dense1, self.dense2 = Dense(32 * 4 * 4, 64, rng), Dense(64, 10, rng)
        self.layers = [
            self.conv1, self.norm1, Relu(),
            self.conv2, self.norm2, Relu(), MaxPool2x2(),
            Flatten(), Dropout(0.3, rng), self.dense1, Relu(), self.dense2,
        ]  # fmt: skip

    def forward(self, x: np.ndarray, training: bool = False) -> np.ndarray:
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def backward(self, d_logits: np.ndarray) -> None:
        for layer in reversed(self.layers):
            d_logits = layer.backward(d_logits)


class Adam:
    """Adam (Kingma and Ba, 2015) with decoupled weight decay (Loshchilov and Hutter, 2019) on everything of rank 2 or more."""

    def __init__(self, network: DigitNetwork, weight_decay: float, beta1: float = 0.9, beta2: float = 0.999):
        self.layers = [layer for layer in network.layers if layer.params]
        self.first = [{k: np.zeros_like(v) for k, v in layer.params.items()} for layer in self.layers]
        self.second = [{k: np.zeros_like(v) for k, v in layer.params.items()} for layer in self.layers]
        self.weight_decay, self.beta1, self.beta2, self.steps = weight_decay, beta1, beta2, 0

    def step(self, learning_rate: float) -> None:
        self.steps += 1
        rate = learning_rate * np.sqrt(1 - self.beta2**self.steps) / (1 - self.beta1**self.steps)
        for layer, first, second in zip(self.layers, self.first, self.second):
            for name, value in layer.params.items():
                grad = layer.grads[name]
                first[name] += np.float32(1 - self.beta1) * (grad - first[name])
                second[name] += np.float32(1 - self.beta2) * (grad * grad - second[name])
                if value.ndim > 1:
                    value -= np.float32(learning_rate * self.weight_decay) * value
                value -= np.float32(rate) * first[name] / (np.sqrt(second[name]) + np.float32(1e-8))


def he_normal(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> np.ndarray:
    """Initial weights for a layer followed by ReLU (He et al., 2015)."""
    return rng.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_in))


def by_channel(v: np.ndarray) -> np.ndarray:
    return v[None, :, None, None]


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)

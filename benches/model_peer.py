"""The models of the bench `models`, and onnxruntime beside it.

Usage: model_peer.py prepare DIR    writes the model files and inputs (needs the wheels in crates/testkit/conformance)
       model_peer.py peer DIR N     runs them with onnxruntime on N threads, by orders on standard input
"""
import json
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

CONFORMANCE = Path(__file__).resolve().parents[1] / "crates" / "testkit" / "conformance"


def cases():
    """(label, model of the conformance suite's catalog, inputs)."""
    random = np.random.default_rng(5)
    image = lambda *shape: random.standard_normal(shape, np.float32)

    def words(batch, length):
        ids = random.integers(1000, 30000, (batch, length))
        return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

    def speech(batch, rate):
        samples = 576 if rate == 16000 else 288
        state = np.zeros((2, batch, 128), np.float32)
        return {"input": image(batch, samples), "state": state, "sr": np.array(rate, np.int64)}

    files = lambda batch: {"bytes": random.integers(0, 257, (batch, 2048)).astype(np.int32)}
    yield "resnet50, 1 image", "resnet50", {"gpu_0/data_0": image(1, 3, 224, 224)}
    yield "resnet50, 32 images", "resnet50", {"gpu_0/data_0": image(32, 3, 224, 224)}
    yield "magika, 1 file", "magika", files(1)
    yield "magika, 16 files", "magika", files(16)
    yield "minilm, 1 x 128", "minilm", words(1, 128)
    yield "minilm, 32 x 128", "minilm", words(32, 128)
    yield "ppocr_cls, 1 x 48x192", "ppocr_cls", {"x": image(1, 3, 48, 192)}
    yield "ppocr_cls, 8 x 48x192", "ppocr_cls", {"x": image(8, 3, 48, 192)}
    yield "ppocr_det, 640x640", "ppocr_det", {"x": image(1, 3, 640, 640)}
    yield "ppocr_rec, 1 x 48x320", "ppocr_rec", {"x": image(1, 3, 48, 320)}
    yield "ppocr_rec, 8 x 48x320", "ppocr_rec", {"x": image(8, 3, 48, 320)}
    yield "silero_vad_op18_ifless, 1", "silero_vad_op18_ifless", speech(1, 16000)
    yield "silero_vad, 1", "silero_vad", speech(1, 16000)
    yield "silero_vad_16k_op15, 1", "silero_vad_16k_op15", speech(1, 16000)


def prepare(folder):
    """Writes the files of all cases, and `cases.json` that lists them."""
    import onnx

    # in the place of this folder, where a file is called as the package is
    sys.path[0] = str(CONFORMANCE)
    from models import catalog

    models = {model.name: model for model in catalog.catalog()}
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, (label, name, feed) in enumerate(cases()):
        file = folder / f"{name}.onnx"
        if not file.is_file():
            models[name].write(file.with_suffix(".part"))
            file.with_suffix(".part").rename(file)
        graph = onnx.load(file).graph
        constants = {tensor.name for tensor in graph.initializer}
        inputs = []
        for index, value in enumerate(value for value in graph.input if value.name not in constants):
            tensor = feed[value.name]
            data = f"{number}-{index}.bin"
            (folder / data).write_bytes(np.ascontiguousarray(tensor).tobytes())
            entry = {"name": value.name, "dtype": str(tensor.dtype), "shape": list(tensor.shape), "file": data}
            inputs.append(entry)
        listed.append({"label": label, "model": file.name, "inputs": inputs})
    (folder / "cases.json").write_text(json.dumps(listed, indent=1))


def read_input(folder, entry):
    flat = np.frombuffer((folder / entry["file"]).read_bytes(), entry["dtype"])
    return flat.reshape(entry["shape"])


def peer(folder, threads):
    """Follows `load LABEL` and `run SECONDS`; answers the second with the median milliseconds of a run."""
    import onnxruntime

    listed = {case["label"]: case for case in json.loads((folder / "cases.json").read_text())}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session, feed = None, {}
    for line in sys.stdin:
        order, _, argument = line.strip().partition(" ")
        if order == "load":
            case = listed[argument]
            file = str(folder / case["model"])
            session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
            feed = {entry["name"]: read_input(folder, entry) for entry in case["inputs"]}
            print("loaded", flush=True)
            continue
        times, end = [], time.perf_counter() + float(argument)
        while time.perf_counter() < end:
            start = time.perf_counter()
            session.run(None, feed)
            times.append((time.perf_counter() - start) * 1e3)
        print(median(times), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder]:
            prepare(Path(folder))
        case ["peer", folder, threads]:
            peer(Path(folder), int(threads))
        case _:
            sys.exit(__doc__)

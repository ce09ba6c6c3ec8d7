"""Real models: rows a second of insula over HTTP beside onnxruntime, interleaved.

Usage: models.py INSULA WORK [MODEL...], with the environment of the conformance suite (target/conformance/venv). Both compute in
FP32 with two threads: onnxruntime with two in one run, insula with two workers that each run a request. Prints the medians of
ROUNDS interleaved rounds with the smallest and largest value, and the ratio of the medians.
"""
import statistics
import sys
import threading
import time
from pathlib import Path

import numpy as np
import onnxruntime

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "crates/testkit/conformance"))
import suite_models  # noqa: E402 (its folder is added first)
from models import catalog, lettering, light  # noqa: E402
from models.server import Server  # noqa: E402

ROUNDS, SECONDS, THREADS = 7, 2.0, 2


def feeds():
    """What each model is asked: the name, what a row is, the rows of a request, and the request."""
    requests = {model.name: model.requests() for model in catalog.catalog() if model.name in ("magika", "minilm")}
    for rows in (1, 8):
        yield "resnet50", "image", rows, light.image_feed("gpu_0/data_0", rows, 1)
    for request in requests["minilm"]:
        if request.label in ("1 x 128", "2 x 128"):
            yield "minilm", "text of 128 tokens", len(request.feed["input_ids"]), request.feed
    yield "magika", "file", 7, requests["magika"][-1].feed
    yield "ppocr_det", "320x320", 1, {"x": lettering.batch(["INSULA 26"], 320, 320)}
    yield "ppocr_rec", "48x320", 8, {"x": np.repeat(lettering.batch(["INSULA 26"], 48, 320), 8, axis=0)}
    yield "ppocr_cls", "48x192", 8, {"x": np.repeat(lettering.batch(["INSULA 26"], 48, 192), 8, axis=0)}


def rate(run, callers, rows):
    """Rows a second of `callers` threads that call `run` for SECONDS."""
    done = [0] * callers
    start = time.perf_counter()

    def call(index):
        while time.perf_counter() - start < SECONDS:
            run()
            done[index] += rows

    threads = [threading.Thread(target=call, args=(index,)) for index in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


def shown(rates):
    return f"{statistics.median(rates):.4g} ({min(rates):.4g}-{max(rates):.4g})"


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def main():
    binary, work, only = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    measured = [feed for feed in feeds() if not only or feed[0] in only]
    names = {name for name, *_ in measured}
    suite_models.write_models([model for model in catalog.catalog() if model.name in names], work / "models")
    print("| model | row | rows a request | onnxruntime | insula, one request | insula, two requests | ratio |")
    print("|---|---|---|---|---|---|---|")
    with Server(binary, work, sorted(names), ["--workers", str(THREADS)]) as server:
        refusals = server.refusals()
        for name, row, rows, feed in measured:
            if name in refusals:
                print(f"| {name} | {row} | {rows} | | {refusals[name]} | | |")
                continue
            peer = session(work / "models" / name / "1" / "model.onnx")
            ways = [(lambda: peer.run(None, feed), 1), (lambda: server.infer(name, feed), 1), (lambda: server.infer(name, feed), 2)]
            for run, _ in ways:
                run()
            rounds = [[rate(run, callers, rows) for run, callers in ways] for _ in range(ROUNDS)]
            theirs, alone, paired = zip(*rounds)
            ratio = statistics.median(paired) / statistics.median(theirs)
            print(f"| {name} | {row} | {rows} | {shown(theirs)} | {shown(alone)} | {shown(paired)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""Real models over HTTP: what insula answers to tritonclient's binary requests against onnxruntime in the same process.

Usage: suite_models.py INSULA WORK [MODEL...]. Writes the models below WORK (once), starts the server INSULA on them and sends each
several inputs: other batches, lengths and picture sizes, and states that go from answer to request; then every row of a batch
alone, which must have the same bits. Exits 1 when a model is not served or wrong, with the server's reason.
"""
import hashlib
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from tritonclient.utils import InferenceServerException

from models import catalog
from models.server import Server

RELATIVE = 1e-3
HERE = Path(__file__).resolve().parent


@dataclass
class Verdict:
    """What came of one model: `ok` or `FAILED`, with the largest differences."""

    word: str
    inputs: str
    absolute: float = 0.0
    relative: float = 0.0
    reason: str = ""


def stamp():
    """Changes with whatever makes the files."""
    sources = [HERE / "requirements.txt", HERE / "model_wheels.txt", *sorted((HERE / "models").glob("*.py"))]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def write_models(models, folder):
    """Writes what is not there yet, each file twice by name, once by content: NAME and NAME-fp16."""
    stamped = folder / "stamp"
    if not stamped.is_file() or stamped.read_text() != stamp():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stamped.write_text(stamp())
    for model in models:
        file = folder / model.name / "1" / "model.onnx"
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            model.write(file.with_name("part"))
            file.with_name("part").rename(file)
        if model.half is not None:
            half = folder / f"{model.name}-fp16"
            (half / "1").mkdir(parents=True, exist_ok=True)
            (half / "model.toml").write_text('precision = "fp16"\n')
            (half / "1" / "model.onnx").unlink(missing_ok=True)
            (half / "1" / "model.onnx").hardlink_to(file)


def answers(model, infer):
    """The outputs of all requests in order, the states of each fed to the next."""
    outputs = []
    for request in model.requests():
        feed = dict(request.feed)
        if request.carries:
            feed.update({into: outputs[-1][out] for into, out in model.states.items()})
        outputs.append(infer(feed))
    return outputs


def reference(file, model):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return answers(model, lambda feed: dict(zip(names, session.run(names, feed))))


def labels(model):
    """The requests by label, each once."""
    return ", ".join(dict.fromkeys(request.label for request in model.requests()))


def compare(model, found, expected, half):
    verdict = Verdict("ok", labels(model))
    for request, (ours, theirs) in enumerate(zip(found, expected)):
        for name, wanted in theirs.items():
            got = ours.get(name)
            if got is None or got.shape != wanted.shape or got.dtype != wanted.dtype:
                given = None if got is None else (got.dtype, got.shape)
                return Verdict("FAILED", verdict.inputs, reason=f"request {request}, `{name}`: {given}, expected {wanted.shape}")
            difference = np.abs(got.astype(np.float64) - wanted)
            verdict.absolute = max(verdict.absolute, float(difference.max()))
            verdict.relative = max(verdict.relative, float((difference / (np.abs(wanted) + model.absolute)).max()))
            allowed = model.half if half else RELATIVE * np.abs(wanted) + model.absolute
            if not (difference <= allowed).all():
                verdict.word, verdict.reason = "FAILED", f"request {request}, `{name}` is off"
    fault = model.fault(found)
    if fault:
        verdict.word, verdict.reason = "FAILED", fault
    return verdict


def rows_of(arrays):
    """The first dimension that all arrays have, if it is one and above 1."""
    sizes = {array.shape[0] if array.ndim else None for array in arrays.values()}
    return sizes.pop() if len(sizes) == 1 and None not in sizes and sizes != {1} else None


def bits_that_differ(server, model, served, found):
    """Whether any row of a batch has other bits alone: the outputs' name, or None. Models with states are asked in order only."""
    if model.states:
        return None
    for request, outputs in zip(model.requests(), found):
        for row in range(rows_of(request.feed) or 0):
            alone = server.infer(served, {name: array[row : row + 1] for name, array in request.feed.items()})
            for name, array in alone.items():
                if array.tobytes() != outputs[name][row : row + 1].tobytes():
                    return f"row {row} of {request.label} has other bits alone in `{name}`"
    return None


def judge(server, model, served, expected, refusals):
    """The verdict on `model` served under the name `served`."""
    if served in refusals:
        return Verdict("FAILED", labels(model), reason=refusals[served])
    try:
        found = answers(model, lambda feed: server.infer(served, feed))
        verdict = compare(model, found, expected, served != model.name)
        differ = bits_that_differ(server, model, served, found)
    except InferenceServerException as error:
        return Verdict("FAILED", labels(model), reason=f"a request was refused: {error}")
    if differ:
        verdict.word, verdict.reason = "FAILED", differ
    return verdict


def show(name, verdict):
    numbers = f"{verdict.absolute:9.2e} {verdict.relative:9.2e}" if verdict.absolute or verdict.word == "ok" else " " * 19
    print(f"{verdict.word:7} {name:28} {numbers}  {verdict.inputs}")
    if verdict.reason:
        print(f"        {verdict.reason.split('; supported, of domain')[0]}")


def main():
    binary, work, only = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    models = [model for model in catalog.catalog() if not only or model.name in only]
    write_models(models, work / "models")
    served = [name for model in models for name in served_names(model)]
    failed, passed = 0, 0
    onnxruntime.set_default_logger_severity(3)
    with Server(binary, work, served) as server:
        refusals = server.refusals()
        print(f"{'verdict':7} {'model':28} {'absolute':>9} {'relative':>9}  inputs")
        for model in models:
            expected = reference(work / "models" / model.name / "1" / "model.onnx", model)
            for name in served_names(model):
                verdict = judge(server, model, name, expected, refusals)
                show(name, verdict)
                passed += verdict.word == "ok"
                failed += verdict.word == "FAILED"
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def served_names(model):
    return [model.name] if model.half is None else [model.name, f"{model.name}-fp16"]


if __name__ == "__main__":
    main()

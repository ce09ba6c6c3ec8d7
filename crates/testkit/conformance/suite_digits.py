"""The digit model through tritonclient and through JSON, FP32 and FP16, against onnxruntime.

Usage: suite_digits.py HOST:PORT. The server must serve the example tenants. Prints the largest differences found and
closes with 'N passed, M failed'; exits 1 if a bound is passed.
"""
import json
import sys
import urllib.request
from pathlib import Path

import numpy as np
import onnxruntime
import tritonclient.http as triton

ROOT = Path(__file__).resolve().parents[3]
ADDRESS = sys.argv[1]
TENANTS = {"acme-corp": "ins_demo_acme_corp_0000000000000000000000", "beta-llc": "ins_demo_beta_llc_00000000000000000000000"}
# FP32: relative 1e-3 with 1e-6 absolute (probabilities below it are noise); FP16: storage of weights and activations in
# halves moves a probability by at most this much.
FP32_RELATIVE, FP32_ABSOLUTE, FP16_ABSOLUTE = 1e-3, 1e-6, 5e-3
BATCHES = (1, 2, 7, 32)


def images():
    raw = np.fromfile(ROOT / "examples/digits/heldout_images.u8", np.uint8).reshape(-1, 1, 8, 8)
    return raw.astype(np.float32)


def reference(batch):
    session = onnxruntime.InferenceSession(ROOT / "examples/models/digits/1/model.onnx", providers=["CPUExecutionProvider"])
    return session.run(["probabilities", "digit"], {"image": batch})


def by_tritonclient(key, batch):
    client = triton.InferenceServerClient(ADDRESS)
    tensor = triton.InferInput("image", list(batch.shape), "FP32")
    tensor.set_data_from_numpy(batch)
    answer = client.infer("digits", [tensor], headers={"Authorization": f"Bearer {key}"})
    return answer.as_numpy("probabilities"), answer.as_numpy("digit")


def by_tritonclient_json(key, batch):
    client = triton.InferenceServerClient(ADDRESS)
    tensor = triton.InferInput("image", list(batch.shape), "FP32")
    tensor.set_data_from_numpy(batch, binary_data=False)
    wanted = [triton.InferRequestedOutput(name, binary_data=False) for name in ("probabilities", "digit")]
    answer = client.infer("digits", [tensor], outputs=wanted, headers={"Authorization": f"Bearer {key}"})
    return answer.as_numpy("probabilities"), answer.as_numpy("digit")


def by_plain_json(key, batch):
    body = {"inputs": [{"name": "image", "shape": list(batch.shape), "datatype": "FP32", "data": batch.reshape(-1).tolist()}]}
    request = urllib.request.Request(
        f"http://{ADDRESS}/v2/models/digits/infer",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    outputs = {o["name"]: o for o in json.load(urllib.request.urlopen(request))["outputs"]}
    return tuple(np.array(outputs[n]["data"]).reshape(outputs[n]["shape"]) for n in ("probabilities", "digit"))


def check(tenant, way, batch):
    probabilities, digits = way(TENANTS[tenant], batch)
    want_probabilities, want_digits = reference(batch)
    difference = np.abs(probabilities - want_probabilities)
    if tenant == "acme-corp":
        allowed = FP32_RELATIVE * np.abs(want_probabilities) + FP32_ABSOLUTE
        good = bool((difference <= allowed).all()) and bool((digits == want_digits).all())
    else:
        sure = np.sort(want_probabilities, axis=1)[:, -1] - np.sort(want_probabilities, axis=1)[:, -2] > 2 * FP16_ABSOLUTE
        good = bool((difference <= FP16_ABSOLUTE).all()) and bool((digits == want_digits)[sure].all())
    print(f"{'ok    ' if good else 'FAILED'} {tenant:9} {way.__name__:22} batch {len(batch):2}: largest difference {difference.max():.2e}")
    return good


def main():
    data = images()
    results = []
    for tenant in TENANTS:
        for way in (by_tritonclient, by_tritonclient_json, by_plain_json):
            results += [check(tenant, way, data[:rows]) for rows in BATCHES]
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()

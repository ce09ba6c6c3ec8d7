"""An insula server of the suite's own: folders of models and one tenant who may use them all, and requests to it."""
import hashlib
import re
import shutil
import subprocess
import time
from pathlib import Path

import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

KEY = "ins_suite_models_0000000000000000000000000"
PATIENCE_SECONDS = 180

TENANT = """version = 1
id = "suite"
uuid = "01a22ee6-b000-7000-8000-00000000c0de"
display_name = "Conformance suite"
state = "active"

[[keys]]
id = "k_suite"
sha256 = "{digest}"
created = 2026-12-01T00:00:00Z
"""


class Server:
    """Starts `binary` with `flags` on the models below `work`/models; ends it when left."""

    def __init__(self, binary, work, names, flags=()):
        self.work = Path(work)
        shutil.rmtree(self.work / "state", ignore_errors=True)
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        grants = "".join(f'\n[[models]]\nname = "{name}"\ncatalog = "{name}"\n' for name in names)
        tenants = self.work / "tenants"
        tenants.mkdir(parents=True, exist_ok=True)
        (tenants / "suite.toml").write_text(TENANT.format(digest=digest) + grants)
        self.ready = self.work / "ready.txt"
        command = [binary, "serve", "--tenants", tenants, "--models", self.work / "models", "--state", self.work / "state"]
        command += ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", *flags]
        with open(self.ready, "w") as said, open(self.work / "server.log", "w") as log:
            self.process = subprocess.Popen(list(map(str, command)), stdout=said, stderr=log)

    def __enter__(self):
        for _ in range(10 * PATIENCE_SECONDS):
            found = re.search(r"^insula is ready: http=(\S+)", self.ready.read_text(), re.MULTILINE)
            if found:
                self.address = found.group(1)
                self.client = triton.InferenceServerClient(self.address, network_timeout=120, connection_timeout=120)
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.__exit__()
        raise SystemExit(f"the server did not start; see {self.work / 'server.log'}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def headers(self):
        return {"Authorization": f"Bearer {KEY}"}

    def refusals(self):
        """Why each model that is not served could not be loaded, by name."""
        index = self.client.get_model_repository_index(headers=self.headers())
        return {entry["name"]: entry.get("reason", "") for entry in index if entry["state"] != "READY"}

    def infer(self, model, feed):
        """All outputs for `feed`, by name; sent and answered as binary tensors."""
        inputs = []
        for name, array in feed.items():
            tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            inputs.append(tensor)
        answer = self.client.infer(model, inputs, headers=self.headers())
        return {output["name"]: answer.as_numpy(output["name"]) for output in answer.get_response()["outputs"]}

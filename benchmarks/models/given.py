"""The ways to give a worker a trained model: what is written and started for each, and what its configuration says."""

from __future__ import annotations

import hashlib
import importlib
import json
import pickle
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import AttributaryError
from attributary_agents.models.factory import make_model

SAME = 1e-6
"""By how much an importance may differ that is computed from the same predictions in double precision."""
SINGLE = 1e-5
"""In single precision: a probability is off by some 5e-7, its squared error by twice that, and half an interval of few
observations by several times that."""

Model = Mapping[str, Any]
"""What stands below `model:`."""


class Way(NamedTuple):
    """A way to give a model."""

    give: Callable[[Any, Path], AbstractContextManager[Model]]
    """Writes or serves an estimator, below a folder that is `artefacts.directory`."""
    tolerance: float = SAME
    needs: tuple[str, ...] = ()
    """Modules without which it cannot be tried."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Those of them that are not installed."""
        return tuple(name for name in self.needs if find_spec(name) is None)


def kept(path: str) -> Any:
    """Return the object that was kept: what a user's own function does, which `factory` names."""
    return pickle.loads(Path(path).read_bytes())


def file_of(folder: Path, name: str, content: bytes) -> Model:
    """Write a file of a model, and return what names it."""
    (folder / name).write_bytes(content)
    return {"file": name, "sha256": hashlib.sha256(content).hexdigest()}


@contextmanager
def _object(estimator: Any, folder: Path) -> Iterator[Model]:
    path = folder / "kept"
    path.write_bytes(pickle.dumps(estimator))
    yield {"factory": f"{__name__}:kept", "params": {"path": str(path)}}


def _file(name: str, dumped: Callable[[Any], bytes]) -> Callable[[Any, Path], AbstractContextManager[Model]]:
    @contextmanager
    def give(estimator: Any, folder: Path) -> Iterator[Model]:
        yield file_of(folder, name, dumped(estimator))

    return give


def _joblib(estimator: Any) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    importlib.import_module("joblib").dump(estimator, buffer)
    return buffer.getvalue()


def _skops(estimator: Any) -> bytes:
    content: bytes = importlib.import_module("skops.io").dumps(estimator)
    return content


@contextmanager
def _onnx(estimator: Any, folder: Path) -> Iterator[Model]:
    types = importlib.import_module("skl2onnx.common.data_types")
    names = list(estimator.feature_names_in_)
    table = [("x", types.FloatTensorType([None, len(names)]))]
    converted = importlib.import_module("skl2onnx").to_onnx(estimator, initial_types=table, options={"zipmap": False})
    yield {**file_of(folder, "model.onnx", converted.SerializeToString()), "features": names}


@contextmanager
def _mlflow(estimator: Any, folder: Path) -> Iterator[Model]:
    trees = ["sklearn.tree._tree.Tree"]  # what skops, as MLflow writes it, does not trust by itself
    save = importlib.import_module("mlflow.sklearn").save_model
    # Told what is needed, MLflow does not start a process of its own to find out.
    save(estimator, str(folder / "model"), skops_trusted_types=trees, pip_requirements=["scikit-learn"])
    yield {"mlflow": "model", "sha256": _hash_to_write({"mlflow": "model"}, folder)}


def _hash_to_write(model: Model, folder: Path) -> str:
    """Return the hash that the message names which refuses a model without one: what a user copies."""
    config = parse_config({"models": {"bank": {"model": dict(model)}}, "artefacts": {"directory": str(folder)}})
    try:
        make_model(config.models["bank"])
    except AttributaryError as error:
        if found := re.search(r"sha256: ([0-9a-f]{64})", str(error)):
            return found[1]
        raise
    raise AssertionError("a model without its hash was taken")


@contextmanager
def _served(estimator: Any, _folder: Path) -> Iterator[Model]:
    names, classes = list(estimator.feature_names_in_), [label.item() for label in estimator.classes_]
    with v2_server(estimator) as address:
        yield {"served": address, "features": names, "classes": classes, "output": "probabilities"}


WAYS: dict[str, Way] = {
    "object of scikit-learn": Way(_object),
    "pickle": Way(_file("model.pkl", pickle.dumps)),
    "joblib": Way(_file("model.joblib", _joblib), needs=("joblib",)),
    "skops": Way(_file("model.skops", _skops), needs=("skops",)),
    "folder of MLflow": Way(_mlflow, needs=("mlflow",)),
    "V2 over HTTP": Way(_served, needs=("httpx", "stamina")),
    "ONNX": Way(_onnx, SINGLE, needs=("skl2onnx", "onnxruntime", "onnx")),
}
"""Each way by its name; the object itself, in a process of one's own, is what all are compared with."""


@contextmanager
def v2_server(estimator: Any, name: str = "bank") -> Iterator[str]:
    """Serve a fitted classifier of named numbers while in the block; yield the address of the model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet: the second would wait for the first to be acknowledged

        def do_GET(self) -> None:
            self._answer({"name": name, "ready": True, "platform": "scikit-learn"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            shares = estimator.predict_proba(_rows(asked["inputs"], list(estimator.feature_names_in_)))
            tensor = {"name": "probabilities", "datatype": "FP64", "shape": list(shares.shape)}
            self._answer({"model_name": name, "outputs": [{**tensor, "data": shares.ravel().tolist()}]})

        def _answer(self, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v2/models/{name}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _rows(inputs: list[dict[str, Any]], names: list[str]) -> Any:
    """Return the rows of a request, of one tensor for all features or of one for each, as the model was fitted."""
    import pandas

    tensors = {one["name"]: np.array(one["data"], float).reshape(one["shape"]) for one in inputs}
    if len(tensors) == 1 and len(names) > 1:
        (values,) = tensors.values()
        return pandas.DataFrame(values, columns=names)
    return pandas.DataFrame({name: tensors[name].reshape(-1) for name in names})

"""A model server in its smallest form: answers Open Inference V2 over HTTP by a model in this process, in doubles.

A stand-in for KServe, Triton or MLServer, which speak the same to their clients.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np


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

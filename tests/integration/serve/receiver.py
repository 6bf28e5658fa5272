"""An address that webhooks tell, in a thread of the test."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Receiver:
    """An address that is told; `status` is what it answers, and `holds` keeps it from answering at all."""

    def __init__(self) -> None:
        self.status = 200
        self.holds = threading.Event()
        self.let_go = threading.Event()
        self.came: list[str] = []
        """Each attempt's event."""
        self.taken: list[str] = []
        """Those that were answered with 200."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.came.append(event["id"])
                if receiver.holds.is_set():
                    receiver.let_go.wait(60)
                if receiver.status == 200:
                    receiver.taken.append(event["id"])
                try:
                    self.send_response(receiver.status)
                    self.end_headers()
                except OSError:  # who asked was killed
                    pass

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self._thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

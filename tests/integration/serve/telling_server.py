"""`attributary serve` as a process, as tests of its webhooks need it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from support.processes.forked import start_command, stop_command


class TellingServer:
    """`attributary serve`."""

    def __init__(self, path: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        argv = ["serve", "--config", path, "--port", str(port)]
        self._child = start_command(argv, log=path.with_suffix(".log"))

    def health(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/health", timeout=10) as answer:
                told: dict[str, Any] = json.loads(answer.read())
                return told
        except OSError:
            return {}

    def is_ready(self) -> bool:
        """Whether it shows all that the topics have."""
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> int:
        """SIGTERM; return the exit code."""
        return stop_command(self._child, 30)

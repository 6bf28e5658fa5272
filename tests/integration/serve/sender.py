"""Webhooks in a process of their own, as a test starts and ends it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[3]


class Sender:
    """A process that sends."""

    def __init__(self, path: Path) -> None:
        argv = [sys.executable, "-m", "tests.integration.serve.webhook_process", str(path)]
        with path.with_suffix(".log").open("ab") as log:
            self.child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT)

    def stop(self) -> list[dict[str, Any]]:
        """SIGTERM; return the counts."""
        self.child.send_signal(signal.SIGTERM)
        said, _ = self.child.communicate(timeout=60)
        assert self.child.returncode == 0
        counts: list[dict[str, Any]] = json.loads(said)
        return counts

    def kill(self) -> None:
        self.child.kill()
        self.child.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.kill()

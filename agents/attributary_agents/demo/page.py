"""The demo's page: `attributary serve` as a child process.

Its address is known before it starts.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .local_broker import HOST, free_port
from .processes import start_child, stop_child

DEFAULT_PORT = 6080
MISSING = "no page: it needs the extra `serve`: pip install 'attributary[serve]'"
_NEEDED = ("fastapi", "uvicorn")
_STOP_TIMEOUT_S = 10.0
_LOG_LINES_SHOWN = 5


class Page:
    """Holds the address of the page, and its server once it has been started.

    It takes the default port, or a free one where somebody listens there; until the server has it, it is kept.
    """

    def __init__(self) -> None:
        self._kept: socket.socket | None = _bound(DEFAULT_PORT)
        self.port = free_port() if self._kept is None else DEFAULT_PORT
        self._server: subprocess.Popen[bytes] | None = None
        self._log: Path | None = None

    @staticmethod
    def can_be_served() -> bool:
        """Return whether the packages with which the server speaks HTTP exist."""
        return all(find_spec(name) is not None for name in _NEEDED)

    @property
    def address(self) -> str:
        """Where browsers find it."""
        return f"http://{HOST}:{self.port}/"

    def settings(self, folder: Path) -> dict[str, object]:
        """Return the section `serve` of the demo's configuration.

        The page's store is in the demo's own folder, and goes with it.
        """
        return {"host": HOST, "port": self.port, "store": str(folder / "page.db")}

    def start(self, config: Path) -> None:
        """Start the server; its log is beside the configuration."""
        self._let_go()
        self._log = config.with_name("serve.log")
        command: list[str | Path] = [sys.executable, "-m", "attributary_agents.cli", "serve", "--config", config]
        self._server = start_child(command, log=self._log)

    def ended(self) -> str | None:
        """Return the end of the log of a server that ended by itself, or None.

        An end is returned once.
        """
        if self._server is None or self._log is None or (status := self._server.poll()) is None:
            return None
        self._server = None
        lines = self._log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        return "\n".join([f"the page's server ended by itself with status {status}; the end of its log:", *lines])

    @property
    def is_served(self) -> bool:
        """Whether its server runs."""
        return self._server is not None

    def close(self) -> None:
        """Stop the server, if it runs."""
        self._let_go()
        if self._server is not None:
            stop_child(self._server, _STOP_TIMEOUT_S)
            self._server = None

    def _let_go(self) -> None:
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _bound(port: int) -> socket.socket | None:
    """Return a socket that holds a port; None where it is in use."""
    holder = socket.socket()
    try:
        holder.bind((HOST, port))
    except OSError:
        holder.close()
        return None
    return holder

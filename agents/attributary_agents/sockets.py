"""Opening of the port of a worker or of the page.

An error says why it cannot be opened and what to do.
"""

from __future__ import annotations

import errno
import socket

from .errors import PreflightError


def listen(host: str, port: int, remedy: str) -> socket.socket:
    """Return a socket that listens; port 0 takes a free port.

    Parameters
    ----------
    remedy
        How to change one of both, with braces for the name of it: `set web.{}`.

    Raises
    ------
    PreflightError
        The address is in use or not ours.
    """
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=128
        )
    except OSError as error:
        change = f"{remedy.format('host')} to an address of this machine"
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            change = f"{remedy.format('port')} to another one, or 0 for any"
        raise PreflightError(f"cannot listen on {host}:{port} ({error.strerror}): {change}") from None

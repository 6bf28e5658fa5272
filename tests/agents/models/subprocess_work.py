"""Work for processes of their own: imports little, so that they begin soon."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path


def work(payload: bytes) -> Callable[[], bytes]:
    name, _, rest = payload.partition(b" ")
    return partial(WORK[name.decode()], rest)


def _killed(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def _raises(_: bytes) -> bytes:
    raise ValueError("a secret")


def _exits(_: bytes) -> bytes:
    raise SystemExit(3)


def _waits(_: bytes) -> bytes:
    time.sleep(1000)
    return b""


def _leaves_a_child(folder: bytes) -> bytes:
    child = os.fork()
    if not child:
        time.sleep(1000)
    (Path(folder.decode()) / "child").write_text(str(child))
    return b"left"


def _prints(_: bytes) -> bytes:
    print("this is no answer", flush=True)
    os.write(1, b"nor is this")
    return b"answer"


WORK: dict[str, Callable[[bytes], bytes]] = {
    "echo": lambda rest: rest[::-1],
    "kill": _killed,
    "raise": _raises,
    "exit": _exits,
    "wait": _waits,
    "child": _leaves_a_child,
    "print": _prints,
    "memory": lambda _: bytes(len(bytearray(2_000_000_000))),
    "size": lambda _: b"x" * 5000,
}

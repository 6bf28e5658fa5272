"""Program of a separate process: limits itself, works, and answers.

It takes its work from stdin and answers on stdout. Stdin begins with eight bytes, the length of what is to be done. The
answer begins with one byte when all is ready. The work begins when another byte has come. The answer goes on with one
more when it is done: `+` for a result, `M` for too little memory, `!` for the type and place of an exception. Eight
bytes with the length of what follows come next: the end of the stream does not tell, since processes that the work has
started may hold it open.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import without_text

BEGUN, RESULT, NO_MEMORY, FAILED = b".", b"+", b"M", b"!"

LENGTH_BYTES = 8

HEAD_BYTES = 1 + LENGTH_BYTES
"""How an answer was come to, and how long it is."""


def main(job: dict[str, Any]) -> None:
    """Do the job that the worker has named, and end.

    Parameters
    ----------
    job
        `function`, as module:function, from bytes to what does the work; `memory` in bytes, or None; `cpu_s`, seconds.
    """
    _limit(job["memory"], job["cpu_s"])
    answers = os.dup(1)
    # What a model prints is no answer.
    os.dup2(2, 1)
    given = os.fdopen(os.dup(0), "rb")
    payload = given.read(int.from_bytes(given.read(LENGTH_BYTES)))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with os.fdopen(answers, "wb") as out:
        try:
            work = _prepare(job["function"], payload)
            out.write(BEGUN)
            out.flush()
            if not given.read(1):  # nobody wants it any more
                os._exit(0)
            answer = RESULT + work()
        except MemoryError:
            answer = NO_MEMORY
        except Exception as error:  # noqa: BLE001 - said by the worker
            answer = FAILED + without_text(error).encode()
        out.write(answer[:1] + (len(answer) - 1).to_bytes(LENGTH_BYTES) + answer[1:])
    os._exit(0)  # threads of the model, and what it registered for the end, are not waited for


def _prepare(path: str, payload: bytes) -> Callable[[], bytes]:
    module, _, name = path.partition(":")
    function: Callable[[bytes], Callable[[], bytes]] = getattr(importlib.import_module(module), name)
    return function(payload)


def end_with_parent() -> None:
    """Have the system end this process together with its parent.

    Only Linux can do that.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _limit(memory: int | None, cpu_s: int) -> None:
    """Limit memory and CPU time, and have this process end with the worker.

    Where the system cannot do that, the worker's own clock ends the process.
    """
    with contextlib.suppress(ImportError):
        import resource

        limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, cpu_s)]
        if memory is not None:
            limits.append((resource.RLIMIT_DATA, memory))
        for kind, most in limits:
            with contextlib.suppress(ValueError, OSError):  # a limit that is lower already
                resource.setrlimit(kind, (most, most))
    end_with_parent()
    if sys.platform == "linux":
        # Where memory runs out all the same, the system ends this process and not the worker.
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")

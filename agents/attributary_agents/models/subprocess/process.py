"""A separate process for a single piece of work: start, exchange, end.

When it ends, everything that it has started ends with it. The process is a fresh Python and no fork: it has none of the
worker's memory, connections, locks and threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable

from .child import BEGUN, FAILED, HEAD_BYTES, LENGTH_BYTES, NO_MEMORY, RESULT

_BOOTSTRAP = (
    "import json, sys; job = json.loads(sys.argv[1]); sys.path[:] = job['path']; "
    "from attributary_agents.models.subprocess.child import main; main(job)"
)
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Each thread of these libraries reserves memory, which counts."""

_SECRETS = {"MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"}
"""Variables that are no business of the work."""

_PIECE = 2**20


class ApartError(Exception):
    """The process did not finish its work.

    Parameters
    ----------
    kind
        `time`, `memory`, `size` or `ended` by the work itself; `failed`, which is an exception; or `start`, where it
        has not begun with the work.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def _at_once() -> None:
    pass


async def run_apart(
    function: str,
    payload: bytes,
    *,
    within_s: float,
    memory: int | None = None,
    max_bytes: int = 2**31,
    begun: Callable[[], Awaitable[None]] = _at_once,
) -> bytes:
    """Run a function on the payload in a separate process; return its result.

    Nothing of the process is left behind. The event loop goes on meanwhile. Where the caller is cancelled, the process
    ends.

    Parameters
    ----------
    function
        Its `module:function`, from the payload to the work: a function without arguments that returns the result.
    within_s
        Seconds until the process is ended.
    memory
        Bytes of data that it may have; None sets no limit.
    max_bytes
        Longest result.
    begun
        Awaited when the process is ready, before it begins with the work.

    Raises
    ------
    ApartError
        It has not finished; the message continues a sentence that begins with what was to be done.
    """
    job = {"function": function, "memory": memory, "cpu_s": int(within_s) + 60, "path": sys.path}
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _BOOTSTRAP,
            json.dumps(job),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**_ONE_THREAD, **{name: os.environ[name] for name in os.environ.keys() - _SECRETS}},
            start_new_session=True,
        )
    except OSError as error:
        raise ApartError("start", f"no process could be started for it: {error.strerror}") from None
    answer = bytearray()
    try:
        async with asyncio.timeout(within_s):
            await _exchange(process, payload, answer, max_bytes, begun)
            if not _is_whole(answer):
                await process.wait()
    except TimeoutError:
        if not answer:
            raise ApartError("start", f"its process did not begin within {within_s:g} s") from None
        raise ApartError("time", f"it took more than {within_s:g} s") from None
    finally:
        _end(process)
        status = await process.wait()
    return _result(bytes(answer), status, max_bytes)


def _result(answer: bytes, status: int, max_bytes: int) -> bytes:
    has_begun = answer[:1] == BEGUN
    kind, said = answer[has_begun:][:1], answer[has_begun:][HEAD_BYTES:]
    if len(said) > max_bytes:
        raise ApartError("size", f"its result is larger than {max_bytes} bytes")
    if _is_whole(answer) and has_begun and kind == RESULT:
        return said
    if kind == NO_MEMORY:
        raise ApartError("memory" if has_begun else "start", "it needs more memory than it may have")
    if kind == FAILED:
        raise ApartError("failed" if has_begun else "start", f"it raised {said[:200].decode(errors='replace')}")
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    raise ApartError("ended" if has_begun else "start", f"its process ended with {name}")


def _is_whole(answer: bytes | bytearray) -> bool:
    """Return whether an answer has all the bytes that its head counts."""
    head = int(answer[:1] == BEGUN)
    end = head + HEAD_BYTES
    return len(answer) >= end and len(answer) == end + int.from_bytes(answer[head + 1 : end])


async def _exchange(
    process: asyncio.subprocess.Process,
    payload: bytes,
    answer: bytearray,
    max_bytes: int,
    begun: Callable[[], Awaitable[None]],
) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(ConnectionError):  # it has ended: how it ended says why
            process.stdin.write(len(payload).to_bytes(LENGTH_BYTES) + payload)
            await process.stdin.drain()
        answer += await process.stdout.read(1)
        if answer == BEGUN:
            await begun()
            with contextlib.suppress(ConnectionError):
                process.stdin.write(BEGUN)
                await process.stdin.drain()
    finally:
        process.stdin.close()
    most = max_bytes + HEAD_BYTES + 1
    while len(answer) <= most and not _is_whole(answer) and (piece := await process.stdout.read(_PIECE)):
        answer += piece
    if len(answer) > most:
        _end(process)


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and all processes of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()

"""Starts child processes that never outlive the process that started them."""

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_AT_EXIT_TIMEOUT_S = 10.0

_children: set[subprocess.Popen[bytes]] = set()


def start_child(
    argv: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start `argv` as a child process that ends when this process does.

    Both its outputs are appended to `log`. `env` is added to this process's environment. The child gets a session of
    its own, so that Ctrl-C in the terminal reaches only the parent, which then stops its children in the order it
    wants. On Linux the kernel sends `death_signal` to the child when the parent dies without a chance to clean up;
    elsewhere only an orderly exit takes the child along.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            preexec_fn=_die_with_parent(death_signal),
        )
    _children.add(child)
    return child


def stop_child(child: subprocess.Popen[bytes], timeout_s: float) -> int:
    """Stop `child` with SIGTERM, or SIGKILL; return its exit status.

    SIGKILL comes where it has not ended after `timeout_s`.
    """
    child.terminate()  # does nothing to a child that has ended
    try:
        status = child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return kill_child(child)
    _children.discard(child)
    return status


def kill_child(child: subprocess.Popen[bytes]) -> int:
    """End `child` with SIGKILL and return its exit status.

    SIGKILL gives it no chance to tidy up.
    """
    child.kill()
    status = child.wait()
    _children.discard(child)
    return status


def _die_with_parent(death_signal: signal.Signals) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    # Between fork and exec only what is already loaded is safe to use: look everything up here.
    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
    parent = os.getpid()
    number = int(death_signal)

    def in_child() -> None:
        # The kernel's "parent" is the *thread* that forked: a child started from a short-lived thread gets
        # the signal as soon as that thread ends. Start children from the main thread.
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above took effect
            os._exit(1)

    return in_child


@atexit.register
def _stop_all() -> None:
    for child in list(_children):
        with contextlib.suppress(OSError):
            stop_child(child, _AT_EXIT_TIMEOUT_S)

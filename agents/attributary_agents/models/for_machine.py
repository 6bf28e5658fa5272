"""Compiles the kernels that a machine does not keep yet, once, before its workers join their group."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable

from attributary_explainers import warm_up
from attributary_explainers.compiled import cache_folder, count_kept, is_compiling

from .machine_lock import machine_lock

logger = logging.getLogger(__name__)

WAITS = "another process of this machine compiles kernels, which is waited for"

_EVERY_S = 5.0
_CODE = "from attributary_agents.models.for_machine import tell_and_compile; tell_and_compile()"


def are_missing() -> bool:
    """Return whether this machine can keep kernels and does not have all of them yet."""
    if not is_compiling() or cache_folder() is None:
        return False
    kept, total = count_kept()
    return kept < total


def compile_for_machine(say: Callable[[int, int], None]) -> None:
    """Compile every kernel that this machine does not keep; the log says how far it is.

    It is done by a process of its own, as the compiler takes memory that no worker needs. Where another process of the
    machine is at it, that one is waited for. What cannot be compiled here is, as it is needed, by who needs it.

    Parameters
    ----------
    say
        Called with how many kernels are ready, of how many: 0 of 0 while another process compiles them.
    """
    folder = cache_folder()
    if folder is None or not are_missing():
        return

    def on_wait() -> None:
        logger.info("%s", WAITS)
        say(0, 0)

    try:
        with machine_lock(folder, on_wait):
            if are_missing():
                _compile_apart(say)
    except OSError as error:
        logger.warning("kernels are not compiled ahead, but by each worker as its models need them: %s", error)


def _compile_apart(say: Callable[[int, int], None]) -> None:
    began, lines = time.monotonic(), Lines(lambda text: logger.info("%s", text))
    say(*count_kept())
    # Without the working folder in the path of modules: nothing there is to be taken for one of ours.
    command = [sys.executable, "-P", "-c", _CODE]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                ready, total = map(int, line.split())
                say(ready, total)
                lines.update(ready, total)
        except BaseException:
            process.kill()
            raise
    kept, total = count_kept()
    if process.returncode or kept < total:
        ended = f"the process that compiles ended with {process.returncode}"
        logger.warning("%d of %d kernels are compiled ahead, the rest as models need it: %s", kept, total, ended)
    else:
        logger.info(
            "compiled the kernels in %.0f s, once on this machine, kept in %s", time.monotonic() - began, cache_folder()
        )


def tell_and_compile() -> None:
    """Compile all kernels, and print after each how many are ready, of how many: for `compile_for_machine`."""
    warm_up(lambda ready, total: print(ready, total, flush=True))


class Lines:
    """Says every few seconds how far it is where compiling takes long, and nothing where all kernels are kept."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said_at = -_EVERY_S

    def update(self, ready: int, total: int) -> None:
        """Say how many kernels are ready, unless that was just said."""
        now = time.monotonic()
        if ready < total and now - self._said_at >= _EVERY_S:
            self._said_at = now
            self._say(f"compiling kernels, once on this machine: {ready} of {total}")

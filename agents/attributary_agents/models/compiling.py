"""Compiles all kernels before they are needed, once on a machine, and shows how far it is."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attributary_explainers import warm_up
from attributary_explainers.compiled import cache_folder, count_kept, is_compiling
from attributary_explainers.warming import WarmUp

from .machine_lock import machine_lock

logger = logging.getLogger(__name__)

_EVERY_S = 5.0
_WAITS = "another process of this machine compiles kernels, which is waited for"
_CODE = "from attributary_agents.models.compiling import tell_and_compile; tell_and_compile()"


def compile_kernels(console: Console) -> WarmUp:
    """Compile the kernels that this machine does not keep yet; half a minute the first time, seconds later.

    Parameters
    ----------
    console
        Where progress is shown: a bar on a terminal, a line every few seconds elsewhere.
    """
    folder = cache_folder()
    if folder is None:
        return _compile_kernels(console)
    with machine_lock(folder, lambda: console.print(_WAITS, markup=False, highlight=False)):
        return _compile_kernels(console)


def _compile_kernels(console: Console) -> WarmUp:
    if not console.is_terminal:
        return warm_up(_Lines(lambda text: console.print(text, markup=False, highlight=False)).update)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compile kernels, once on this machine", total=None)
        return warm_up(lambda ready, total: bar.update(task, completed=ready, total=total))


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
        logger.info("%s", _WAITS)
        say(0, 0)

    try:
        with machine_lock(folder, on_wait):
            if are_missing():
                _compile_apart(say)
    except OSError as error:
        logger.warning("kernels are not compiled ahead, but by each worker as its models need them: %s", error)


def _compile_apart(say: Callable[[int, int], None]) -> None:
    began, lines = time.monotonic(), _Lines(lambda text: logger.info("%s", text))
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


class _Lines:
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

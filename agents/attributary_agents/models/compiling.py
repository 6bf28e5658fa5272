"""Compiles all kernels before they are needed, and shows how far it is."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attributary_explainers import warm_up
from attributary_explainers.warming import WarmUp

_EVERY_S = 5.0


def compile_kernels(console: Console) -> WarmUp:
    """Compile the kernels that this machine does not keep yet; half a minute the first time, seconds later.

    Parameters
    ----------
    console
        Where progress is shown: a bar on a terminal, a line every few seconds elsewhere.
    """
    if not console.is_terminal:
        return warm_up(_Lines(console).update)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compile kernels, once on this machine", total=None)
        return warm_up(lambda ready, total: bar.update(task, completed=ready, total=total))


class _Lines:
    """Prints a line where compiling takes long, and none where all kernels are kept."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said_at = -_EVERY_S

    def update(self, ready: int, total: int) -> None:
        """Print how many kernels are ready, unless that was just said."""
        now = time.monotonic()
        if ready < total and now - self._said_at >= _EVERY_S:
            self._said_at = now
            text = f"compiling kernels, once on this machine: {ready} of {total}"
            self._console.print(text, markup=False, highlight=False)

"""Compiles all kernels before they are needed, and shows how far it is on a terminal or in lines."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attributary_explainers import warm_up
from attributary_explainers.compiled import cache_folder
from attributary_explainers.warming import WarmUp

from .for_machine import WAITS, Lines, are_missing
from .machine_lock import machine_lock


def compile_kernels(console: Console) -> WarmUp:
    """Compile the kernels that this machine does not keep yet; half a minute the first time, seconds later.

    Parameters
    ----------
    console
        Where progress is shown: a bar on a terminal, a line every few seconds elsewhere.
    """
    folder = cache_folder()
    if folder is None or not are_missing():
        return _compile_kernels(console)
    with machine_lock(folder, lambda: console.print(WAITS, markup=False, highlight=False)):
        return _compile_kernels(console)


def _compile_kernels(console: Console) -> WarmUp:
    if not console.is_terminal:
        return warm_up(Lines(lambda text: console.print(text, markup=False, highlight=False)).update)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("compile kernels, once on this machine", total=None)
        return warm_up(lambda ready, total: bar.update(task, completed=ready, total=total))

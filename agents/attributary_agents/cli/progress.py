"""Shows on stderr how far a command is: a bar on a terminal, a line now and then anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from attributary_explainers.wording import printable, show_count

from ..config.settings import Config
from .commands import say

EVERY_S = 10.0


def not_acknowledged(seconds: float, n: int) -> str:
    """Return what is said of brokers that acknowledge nothing of what was sent."""
    rows = f"{show_count(n)} row{' waits' if n == 1 else 's wait'}"
    return f"the brokers have acknowledged nothing for {seconds:.0f} s; {rows}, and are sent as soon as they do"


SLOW_S = 4.0
"""A command that has asked the brokers for so long says that it waits for them."""


@contextmanager
def told_when_slow(config: Config) -> Iterator[None]:
    """Say on stderr, where it is a terminal, that the brokers are waited for, once the block has taken SLOW_S."""
    brokers = ", ".join(config.kafka.brokers)
    timer = Timer(SLOW_S, say, [f"attributary: waiting for answers of the brokers at {brokers}"], {"err": True})
    timer.daemon = True
    if sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Shown(Protocol):
    """Shows how many rows are done, and what else there is to say."""

    def __call__(self, n: int, detail: str = "") -> None:
        """Show it."""


@contextmanager
def progress(what: str, total: int | None, *, clock: Callable[[], float] = time.monotonic) -> Iterator[Shown]:
    """Give a function that shows on stderr how many rows are done.

    Parameters
    ----------
    what
        Name of the command.
    total
        Rows in all; None where that is not known.
    clock
        Seconds; where stderr is no terminal, there is a line every 10 of them, and none for what takes less.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(what, total, clock)
        return
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.fields[detail]}"), console=console) as bar:
        task = bar.add_task(what, total=total, detail="")
        yield lambda n, detail="": bar.update(task, completed=n, detail=escape(printable(detail)))


@contextmanager
def holdouts_told() -> Iterator[None]:
    """Show on stderr how far each model's hold-out is explained."""
    from attributary_explainers.monitor.holdout import holdouts_shown

    with ExitStack() as bar:
        shown: Shown | None = None

        def show(model_id: str, n: int, total: int) -> None:
            nonlocal shown
            if shown is None or n == 1:
                bar.close()  # a model may have failed in the middle
                shown = bar.enter_context(progress(f"explaining the hold-out of {model_id}", total))
            shown(n)
            if n == total:
                bar.close()

        with holdouts_shown(show):
            yield


class _Lines:
    def __init__(self, what: str, total: int | None, clock: Callable[[], float]) -> None:
        self._what, self._of = what, "" if total is None else f" of {show_count(total)}"
        self._clock = clock
        self._began_at = self._said_at = clock()

    def __call__(self, n: int, detail: str = "") -> None:
        now = self._clock()
        if now - self._said_at < EVERY_S:
            return
        self._said_at = now
        said = [f"{show_count(n)}{self._of} rows", *([detail] if detail else []), f"{now - self._began_at:.0f} s"]
        say(f"{self._what}: {', '.join(said)}", err=True)

"""Trials in processes, with a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import Progress


class Row(NamedTuple):
    """A line of the table."""

    what: str
    found: str
    goal: str


class Map(Protocol):
    """Calls a function with every tuple of arguments, and returns the results in their order."""

    def __call__(self, run: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return one result for each."""


@contextmanager
def workers(processes: int) -> Iterator[Map]:
    """So many processes, each of which teaches its models once; one runs here."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:

        def shown(name: str, results: Iterator[Any], total: int) -> list[Any]:
            task = bar.add_task(name, total=total)
            found = []
            for result in results:
                found.append(result)
                bar.advance(task)
            bar.remove_task(task)
            return found

        if processes == 1:
            yield lambda run, arguments: shown(run.__name__, (run(*a) for a in arguments), len(arguments))
            return
        with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:

            def spread(run: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
                waiting = [pool.submit(run, *a) for a in arguments]
                return shown(run.__name__, (future.result() for future in waiting), len(arguments))

            yield spread

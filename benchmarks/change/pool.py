"""All runs, in processes of their own; the results do not depend on how many."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any

from benchmarks.change.counting import summarise
from benchmarks.change.runner import Record, run
from benchmarks.change.settings import GRID_SETTINGS, ROUTE_SETTINGS, is_route
from benchmarks.change.streams import STREAMS, STREAMS_BY_NAME


@dataclass(frozen=True)
class Task:
    """One run of a stream."""

    stream: str
    index: int


def tasks(n_runs: int) -> list[Task]:
    """The longest first."""
    found = [Task(s.name, index) for s in STREAMS for index in range(n_runs) if is_route(index, s.slow_model)]
    return sorted(found, key=lambda task: -STREAMS_BY_NAME[task.stream].n)


def execute(task: Task) -> tuple[Task, dict[str, Record]]:
    """Do one run."""
    return task, run(STREAMS_BY_NAME[task.stream], task.index)


def execute_all(todo: Sequence[Task], processes: int) -> Iterator[tuple[Task, dict[str, Record]]]:
    """Do them in so many processes, 1 meaning this one; gives them as they end."""
    if processes == 1:
        yield from map(execute, todo)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(execute, task) for task in todo]):
            yield future.result()


def results(n_runs: int, processes: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Do everything and summarise: plain data.

    `cells` has the routes over all seeds, `grid` the other settings over the fewer seeds that they run with.
    """
    todo = tasks(n_runs)
    records: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
    for done, (task, found) in enumerate(execute_all(todo, processes), start=1):
        for setting, record in found.items():
            records[task.stream, setting][task.index] = record
        progress(done, len(todo))
    cells: dict[str, dict[str, Any]] = {}
    grid: dict[str, dict[str, Any]] = {}
    for stream in STREAMS:
        for of, settings in ((cells, ROUTE_SETTINGS), (grid, GRID_SETTINGS)):
            of[stream.name] = {
                s.name: summarise(stream, s, _in_order(records[stream.name, s.name]))
                for s in settings
                if (stream.name, s.name) in records
            }
    return {
        "runs": n_runs,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("river", "numpy")}},
        "cells": cells,
        "grid": grid,
        "first_run": {
            stream.name: {s.name: records[stream.name, s.name][0].as_dict() for s in ROUTE_SETTINGS}
            for stream in STREAMS
        },
    }


def _in_order(by_index: dict[int, Record]) -> list[Record]:
    return [by_index[index] for index in sorted(by_index)]

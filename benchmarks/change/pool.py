"""All runs, in processes of their own; the results do not depend on how many."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any, TypeVar

from benchmarks.change.runner import Record, run
from benchmarks.change.settings import ROUTE_SETTINGS, SETTINGS, is_grid
from benchmarks.change.streams import STREAMS, STREAMS_BY_NAME
from benchmarks.change.summary import summarise
from benchmarks.change.traces import Trace, compare, trace

_T = TypeVar("_T")

MOST_TRACES = 30
"""Runs of each stream in which the estimates of the discrepancy are compared; the exact value is what costs there."""


@dataclass(frozen=True)
class Task:
    """One run of a stream; `kind` is `run` or `trace`."""

    kind: str
    stream: str
    index: int


def tasks(n_runs: int) -> list[Task]:
    """The longest first."""
    found = []
    for stream in STREAMS:
        indices = range(n_runs)
        found += [Task("run", stream.name, index) for index in indices]
        if stream.drift is not None:
            found += [Task("trace", stream.name, index) for index in indices[:MOST_TRACES]]
    return sorted(found, key=lambda task: -STREAMS_BY_NAME[task.stream].n)


def execute(task: Task) -> tuple[Task, dict[str, Record] | Trace]:
    """Do one run."""
    stream = STREAMS_BY_NAME[task.stream]
    return task, run(stream, task.index) if task.kind == "run" else trace(stream, task.index)


def execute_all(todo: Sequence[Task], processes: int) -> Iterator[tuple[Task, dict[str, Record] | Trace]]:
    """Do them in so many processes, 1 meaning this one; gives them as they end."""
    if processes == 1:
        yield from map(execute, todo)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(execute, task) for task in todo]):
            yield future.result()


def results(n_runs: int, processes: int, progress: Callable[[int, int], None]) -> dict[str, Any]:
    """Do everything and summarise: plain data.

    `cells` has the routes over all seeds; `grid` has every setting, the routes too, over the seeds of the grid alone,
    so that its cells can be compared.
    """
    todo = tasks(n_runs)
    records: dict[tuple[str, str], dict[int, Record]] = defaultdict(dict)
    traces: dict[str, dict[int, Trace]] = defaultdict(dict)
    for done, (task, found) in enumerate(execute_all(todo, processes), start=1):
        if isinstance(found, Trace):
            traces[task.stream][task.index] = found
        else:
            for setting, record in found.items():
                records[task.stream, setting][task.index] = record
        progress(done, len(todo))
    cells: dict[str, dict[str, Any]] = {}
    grid: dict[str, dict[str, Any]] = {}
    for stream in STREAMS:
        done_here = {s: records[stream.name, s.name] for s in SETTINGS if (stream.name, s.name) in records}
        cells[stream.name] = {s.name: summarise(stream, s, _in_order(runs)) for s, runs in done_here.items()}
        paired = {
            s: {index: one for index, one in runs.items() if is_grid(index, stream.slow_model)}
            for s, runs in done_here.items()
        }
        grid[stream.name] = {s.name: summarise(stream, s, _in_order(runs)) for s, runs in paired.items() if runs}
    return {
        "runs": n_runs,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("river", "numpy")}},
        "cells": {name: {s.name: of[s.name] for s in ROUTE_SETTINGS if s.name in of} for name, of in cells.items()},
        "grid": grid,
        "traces": {
            stream.name: compare(stream, _in_order(traces[stream.name]))
            for stream in STREAMS
            if stream.drift is not None
        },
        "first_run": {
            stream.name: {s.name: records[stream.name, s.name][0].as_dict() for s in ROUTE_SETTINGS}
            for stream in STREAMS
        },
    }


def _in_order(by_index: dict[int, _T]) -> list[_T]:
    return [by_index[index] for index in sorted(by_index)]

"""All rows, in the order of the table, and their runs: pure functions of row and seed, in processes of their own."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from benchmarks.data import NoDataError
from benchmarks.papers import change
from benchmarks.papers.ipfi import approximation, cost, drift
from benchmarks.papers.isage import elec2, removal, sensors, static, switching
from benchmarks.papers.rows import Row, Run, Settings

ROWS: tuple[Row, ...] = tuple(
    row
    for module in (change, approximation, drift, cost, switching, removal, static, elec2, sensors)
    for row in module.ROWS
)

ROWS_BY_NAME = {row.name: row for row in ROWS}


def select(beginnings: Sequence[str]) -> tuple[Row, ...]:
    """The rows whose names begin with one of these; all for none.

    Raises
    ------
    LookupError
        Nothing begins with one of them.
    """
    for beginning in beginnings:
        if not any(row.name.startswith(beginning) for row in ROWS):
            raise LookupError(f"no row begins with {beginning!r}: --list names them")
    return tuple(row for row in ROWS if not beginnings or row.name.startswith(tuple(beginnings)))


@dataclass(frozen=True)
class Task:
    """One run of a row."""

    row: str
    index: int
    seed: int
    settings: Settings


@dataclass(frozen=True)
class Done:
    """What came of it: a run, or the data file that is missing, or what went wrong."""

    task: Task
    cpu_s: float
    run: Run | None = None
    missing: Path | None = None
    error: str = ""


def execute(task: Task) -> Done:
    """Do one run; whatever it raises is part of the answer."""

    start = time.process_time()
    try:
        run = ROWS_BY_NAME[task.row].run(task.seed, task.settings)
    except NoDataError as error:
        return Done(task, time.process_time() - start, missing=error.path)
    except Exception:  # noqa: BLE001 - one broken row is reported, and the others are run
        return Done(task, time.process_time() - start, error=traceback.format_exc())
    return Done(task, time.process_time() - start, run)


def execute_all(tasks: Sequence[Task], *, jobs: int) -> Iterator[Done]:
    """Do them in `jobs` processes, 1 meaning this one; gives them as they end."""
    # The pool is the parallelism; scikit-learn's threads would fight it. Read when its libraries are loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if jobs == 1:
        yield from map(execute, tasks)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting: list[Future[Done]] = [pool.submit(execute, task) for task in tasks]
        for future in as_completed(waiting):
            yield future.result()

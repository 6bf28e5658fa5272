"""Runs in processes of their own: every one is a pure function of its row and seed."""

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
from benchmarks.papers.rows import Run, Settings


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
    from benchmarks.papers.registry import ROWS_BY_NAME  # in the pool's process: rows are not sent, but looked up

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

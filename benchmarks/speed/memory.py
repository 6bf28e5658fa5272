"""What explaining allocates per observation, and whether memory stays where it is over a long stream."""

from __future__ import annotations

import multiprocessing
import os
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.speed.blocks import Spread
from benchmarks.speed.kinds import Kind
from benchmarks.speed.ours import Ours
from benchmarks.speed.reference import Reference
from benchmarks.speed.subjects import SUBJECTS_BY_NAME, Observation, Subject
from benchmarks.speed.table import ALONE, OURS, REFERENCE, present

KIND = Kind("both, 10", pfi=10, sage=10)
SUBJECTS = ("linear", "arf10")
"""One whose state does not grow, and a forest, which does."""

OBSERVATIONS = 200_000
TENTHS = 10
LEARNED = 2000
_STEADY = 300
"""Observations that fill the reservoirs and every cache, before allocations are counted."""


def memory(observations: int, traced: int, tick: Callable[[str], None]) -> dict[str, Any]:
    """Allocations and resident memory, as plain data.

    Each loop has a process of its own, since memory that a process has had it does not give back.
    """
    found: dict[str, Any] = {"observations": observations, "allocated": {}, "rss": {}}
    for name in SUBJECTS:
        columns = (ALONE[0], *present((OURS, REFERENCE)))
        tick(f"{SUBJECTS_BY_NAME[name].title}: allocations")
        found["allocated"][name] = {column: _apart(allocated, name, column, traced) for column in columns}
        found["rss"][name] = {}
        for column in (ALONE[0], OURS):
            tick(f"{SUBJECTS_BY_NAME[name].title}: {column}, {observations:,} observations")
            found["rss"][name][column] = _apart(resident, name, column, observations)
    return found


def _apart(function: Callable[[str, str, int], Any], name: str, column: str, n: int) -> Any:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(function, name, column, n).result()


def allocated(name: str, column: str, n: int) -> dict[str, float]:
    """Bytes that predict and explain allocate at once, over what was there before the observation.

    Returns
    -------
    `median` and `high` (the upper quartile) of the peaks, and `kept`: growth per observation, learning included.
    """
    subject = SUBJECTS_BY_NAME[name]
    stream, model = _learnt(subject)
    peaks: list[float] = []
    tracemalloc.start()  # before anything is stored, so that what is replaced later is known to have been there
    try:
        step = _step(subject, column, model, stream)
        for x, y in islice(stream, _STEADY):
            step(x, y)
            model.learn_one(x, y)
        start = tracemalloc.get_traced_memory()[0]
        for x, y in islice(stream, n):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            step(x, y)
            peaks.append(float(tracemalloc.get_traced_memory()[1] - before))
            model.learn_one(x, y)
        kept = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    found = Spread.of(peaks)
    return {"median": found.median, "high": found.high, "kept": kept / n}


def resident(name: str, column: str, n: int) -> list[float]:
    """Megabytes of the process after each tenth of n observations."""
    subject = SUBJECTS_BY_NAME[name]
    stream, model = _learnt(subject)
    step, found = _step(subject, column, model, stream), []
    for _ in range(TENTHS):
        for x, y in islice(stream, n // TENTHS):
            step(x, y)
            model.learn_one(x, y)
        found.append(rss_bytes() / 1e6)
    return found


def rss_bytes() -> int:
    """Memory of this process that is in use now.

    Raises
    ------
    OSError
        This is not Linux.
    """
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _learnt(subject: Subject) -> tuple[Iterator[Observation], Any]:
    stream, model = subject.stream(), subject.make()
    for x, y in islice(stream, LEARNED):
        model.learn_one(x, y)
    return stream, model


def _step(
    subject: Subject, column: str, model: Any, stream: Iterator[Observation]
) -> Callable[[dict[str, Any], Any], Any]:
    """What is done with an observation before it is learnt."""
    if column == OURS:
        return Ours(model, subject.loss, KIND).step
    predict = subject.predict(model)
    if column != REFERENCE:
        return lambda x, y: predict(x)
    reference = Reference(predict, subject.loss, KIND, list(islice(stream, KIND.stored)))

    def step(x: dict[str, Any], y: Any) -> Any:
        y_pred = predict(x)
        reference.step(x, y)
        return y_pred

    return step

"""Takes the rows of a table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from attributary_explainers import exact_sage, expected_pfi

from .peers import Method
from .subjects import Array, Subject

SEEDS = range(3)


@dataclass(frozen=True)
class Row:
    """What a method took of a subject, the mean over the seeds."""

    measure: str
    method: str
    error: float
    """Root mean square over features and seeds."""
    scale: float
    """The largest importance."""
    seconds: float
    calls: int
    rows: int
    is_standard: bool


def exact_of(subject: Subject, measure: str) -> Array:
    """Return the exact values of a subject's data."""
    method = expected_pfi if measure == "PFI" else exact_sage
    found = method(subject.model, subject.rows, subject.y.tolist(), loss=subject.loss)
    return np.array(list(found.importance.values()))


def measured(subject: Subject, methods: Sequence[Method]) -> list[Row]:
    """Return a row for each method that is installed and that the subject is for."""
    return list(_measured(subject, methods))


def _measured(subject: Subject, methods: Sequence[Method]) -> Iterator[Row]:
    exact: dict[str, Array] = {}
    for method in methods:
        if method.measure == "SAGE" and not subject.has_sage:
            continue
        if method.needs is not None and find_spec(method.needs) is None:
            continue
        if method.measure not in exact:
            exact[method.measure] = exact_of(subject, method.measure)
        truth = exact[method.measure]
        subject.counted.calls = subject.counted.rows = 0
        began = time.process_time()
        found = [method.take(subject, seed) for seed in SEEDS]
        seconds = (time.process_time() - began) / len(SEEDS)
        yield Row(
            method.measure,
            method.name,
            float(np.sqrt(np.mean([(of - truth) ** 2 for of in found]))),
            float(np.abs(truth).max()),
            seconds,
            subject.counted.calls // len(SEEDS),
            subject.counted.rows // len(SEEDS),
            method.is_standard,
        )

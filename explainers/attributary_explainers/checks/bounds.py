"""Checks that counts add up and that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..incremental.base import IncrementalExplainer
from ..typing import Features
from .subject import Subject, expect, explain, n_held, size_of

_MEASUREMENTS = 8
_MARGIN = 1.05


def counts_add_up(subject: Subject) -> None:
    """Every observation counts as explained or skipped, mostly explained."""
    explainer, _ = subject.new()
    results = explain(explainer, subject.stream)
    expect(
        explainer.n_observations > len(results) / 2,
        f"more than half of {len(results)} ordinary observations to be explained",
        f"{explainer.n_observations} of them",
    )


def memory_is_bounded(subject: Subject) -> None:
    """Snapshot and held objects do not grow after `horizon` observations."""
    explainer, model = subject.new()
    _stays(explainer, model, _long(subject), subject.horizon, "of a stream that goes on as it began")


def memory_is_bounded_by_names(subject: Subject) -> None:
    """State does not grow although each observation brings a new feature."""
    explainer, model = subject.new()
    ever_new = (({**x, f"new {i}": 1.0}, y) for i, (x, y) in enumerate(_long(subject)))
    _stays(explainer, model, ever_new, subject.horizon, "each with a feature of a new name")


def _long(subject: Subject) -> Iterator[tuple[Features, Any]]:
    """Yield a stream of three horizons in which no number comes twice."""
    stream = subject.stream
    for i in range(3 * subject.horizon):
        x, y = stream[i % len(stream)]
        nudge = 1.0 + 1e-9 * i
        yield {name: value * nudge if type(value) is float else value for name, value in x.items()}, y


def _stays(
    explainer: IncrementalExplainer, model: Any, stream: Iterator[tuple[Features, Any]], horizon: int, of_what: str
) -> None:
    early, late = (0, 0), (0, 0)
    every = max(horizon // _MEASUREMENTS, 1)
    for number, (x, y) in enumerate(stream, 1):
        explainer.explain_one(x, y)
        if number % every:
            continue
        sizes = size_of(explainer.snapshot()), n_held(explainer, model)
        if number <= horizon:
            early = max(early[0], sizes[0]), max(early[1], sizes[1])
        else:
            late = max(late[0], sizes[0]), max(late[1], sizes[1])
    for name, before, after in zip(("bytes of the snapshot", "objects held"), early, late, strict=True):
        expect(
            after <= _MARGIN * before,
            f"the {name} to stay below {_MARGIN} times their number within {horizon} observations {of_what}",
            f"{before} until then, {after} within {3 * horizon}",
        )

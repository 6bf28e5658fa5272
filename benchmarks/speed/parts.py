"""Where the time of an explained observation goes: the profile that says what limits a ratio."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from attributary_explainers.evaluation.function import FastFunction
from attributary_explainers.incremental.removal import RemovalExplainer, RowByRow
from attributary_explainers.removal.imputer import CoalitionsRequest, ReplacedRowsRequest
from benchmarks.speed.kinds import Kind
from benchmarks.speed.ours import Ours
from benchmarks.speed.subjects import Subject
from benchmarks.speed.table import SETTLED

PARTS = {
    "encode": "read the observation",
    "ask": "draw",
    "answer": "rows, evaluated",
    "hear": "losses, smoothing, storing",
}
"""Part to its title, in the order in which they come."""

_METHODS: tuple[tuple[Any, str, str], ...] = (
    (FastFunction, "plain", "encode"),
    (FastFunction, "encode", "encode"),
    (RemovalExplainer, "request", "ask"),
    (ReplacedRowsRequest, "fill", "answer"),
    (CoalitionsRequest, "fill", "answer"),
    (FastFunction, "predict", "answer"),
    (RowByRow, "evaluate", "answer"),
    (RemovalExplainer, "update", "hear"),
)
EVALUATOR = "evaluator"
"""Within `answer`: the evaluator alone."""


def profile(subject: Subject, kind: Kind, *, learned: int, observations: int) -> dict[str, Any]:
    """Medians of processor-bound time over observations, the model learning between them.

    Returns
    -------
    `alone_us`: to predict and learn; `predict_us`: what explaining saves of it, since the prediction is a row of the
    batch; `explain_us` and, within it, `parts_us` by `PARTS` and `EVALUATOR`; `rows`: how many are evaluated.
    """
    stream, model = subject.stream(), subject.make()
    for x, y in islice(stream, learned):
        model.learn_one(x, y)
    ours, predict = Ours(model, subject.loss, kind), subject.predict(model)
    for x, _ in islice(stream, SETTLED):
        ours.skip(x)
    for x, y in islice(stream, 2 * kind.stored):
        ours.step(x, y)
        model.learn_one(x, y)
    # In turns: nothing is between the two clocks of `explain` but what a user has.
    took: dict[str, list[float]] = defaultdict(list)
    with _timed(ours) as parts:
        for number, (x, y) in enumerate(islice(stream, 2 * observations)):
            parts.on = bool(number % 2)
            _clock(took["explain" if number % 2 == 0 else "timed"], lambda: ours.step(x, y))  # noqa: B023
            parts.next()
            _clock(took["learn"], lambda: model.learn_one(x, y))  # noqa: B023
            _clock(took["predict"], lambda: predict(x))  # noqa: B023
    median = {name: 1e6 * statistics.median(values) for name, values in took.items()}
    return {
        "alone_us": median["predict"] + median["learn"],
        "predict_us": median["predict"],
        "explain_us": median["explain"],
        "parts_us": {name: 1e6 * statistics.median(values) for name, values in parts.of_all.items()},
        "rows": ours._together.n_rows,
    }


def _clock(into: list[float], do: Callable[[], Any]) -> None:
    began = time.perf_counter()
    do()
    into.append(time.perf_counter() - began)


class _Parts:
    """Seconds by part of one observation, and of all."""

    def __init__(self) -> None:
        self.on = False
        self.inside: set[str] = set()
        """Parts that are being timed: one of their functions may call another."""
        self.of_one: dict[str, float] = defaultdict(float)
        self.of_all: dict[str, list[float]] = defaultdict(list)

    def next(self) -> None:
        """The observation is over."""
        if self.on:
            for name in (*PARTS, EVALUATOR):
                self.of_all[name].append(self.of_one[name])
        self.of_one.clear()

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed while `on`."""

        def timed(*args: Any, **named: Any) -> Any:
            if not self.on or name in self.inside:
                return function(*args, **named)
            self.inside.add(name)
            began = time.perf_counter()
            try:
                return function(*args, **named)
            finally:
                self.of_one[name] += time.perf_counter() - began
                self.inside.discard(name)

        return timed


@contextmanager
def _timed(ours: Ours) -> Iterator[_Parts]:
    function, parts = ours._together.function, _Parts()
    evaluator = function._evaluator if isinstance(function, FastFunction) else None
    methods = [*_METHODS, *([] if evaluator is None else [(type(evaluator), "predict", EVALUATOR)])]
    kept = [(kind, name, getattr(kind, name)) for kind, name, _ in methods]
    for kind, name, part in methods:
        setattr(kind, name, parts.around(part, getattr(kind, name)))
    try:
        yield parts
    finally:
        for kind, name, own in kept:
            setattr(kind, name, own)

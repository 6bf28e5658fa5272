"""Explained over unexplained: one subject, each kind of explanation, ours beside a naive loop and iXAI."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from attributary_explainers import freeze
from benchmarks.speed.loops import Kind, Loop, Naive, Ours, Reference, installed, ratio, take_turns
from benchmarks.speed.subjects import Observation, Subject

OURS, NAIVE, REFERENCE = "ours", "naive", "ixai"
COLUMNS = (OURS, NAIVE, REFERENCE)
ALONE = ("alone", "")


SETTLED = 2000


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    Parameters
    ----------
    learned
        Observations that a model has learnt before.
    observations
        Measured; of quick subjects five times as many.
    block
        Observations in a turn; of quick subjects `LONG` times as many.
    checked
        Observations over which our importances are compared with those from the model's own predictions, row by row.
        0: they are not.
    columns
        Of `COLUMNS`; one that is not installed is left out.
    settled
        So many are stored before, of which the last are explained: few of those that come next are stored.
    """

    learned: int = 2000
    observations: int = 50
    block: int = 5
    checked: int = 10
    columns: tuple[str, ...] = COLUMNS
    settled: int = SETTLED


QUICK = 5
"""Times as many observations of a quick subject."""
LONG = 25
"""Times as many of them in a turn, which then takes some ten milliseconds, as that of a forest does. In a turn of one
millisecond the caches that others have filled meanwhile were a tenth of what is measured, and a stream has no turns."""

WARM = 100
"""The last observations that are learnt before time is taken: by each loop by itself."""
BENT = 700
"""So many are explained before, by observational removal: it is known what is bent."""


def present(columns: Sequence[str]) -> tuple[str, ...]:
    """Without iXAI's, where that is not installed."""
    return tuple(column for column in columns if column != REFERENCE or installed())


def measure(
    subject: Subject, kinds: Sequence[Kind], plan: Plan, tick: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Ratios of one subject, as plain data.

    Returns
    -------
    `alone_us`: processor time of predict and learn. `kinds`: by the name of a kind, per column
    the ratio to it with quartiles; `speed_up`, iXAI's time over ours; `difference`, the largest of an importance from
    the one that the model's own predictions give; `evaluations`, rows per observation; per column `y_pred`, the
    largest difference of a prediction that it handed out from that of the model alone, and `model`, that of the
    predictions of the models at the end: explaining changes nothing.
    """
    n, block = turns(subject, plan)
    stream = subject.stream()
    model = subject.make()
    for x, y in islice(stream, max(plan.learned - WARM, 0)):
        model.learn_one(x, y)
    stored = list(islice(stream, max(plan.settled, *(kind.stored for kind in kinds))))
    data = list(islice(stream, n))
    loops = {ALONE: alone(subject, freeze(model), stored)}
    for kind in kinds:
        for column in present(plan.columns):
            loops[column, kind.name] = _loop(column, subject, kind, freeze(model), stored)
            tick()
    times = take_turns(loops, data, block, tick)
    predictions, at_end = loops[ALONE].predictions, last(subject, loops[ALONE], data)
    found: dict[str, Any] = {
        "alone_us": 1e6 * sum(times[ALONE]) / n,
        "observations": n,
        "kinds": {},
    }
    for kind in kinds:
        of_kind: dict[str, Any] = {
            column: asdict(ratio(times[column, kind.name], times[ALONE])) for column in present(plan.columns)
        }
        if OURS in plan.columns and REFERENCE in of_kind:
            of_kind["speed_up"] = asdict(ratio(times[REFERENCE, kind.name], times[OURS, kind.name]))
        if OURS in plan.columns and plan.checked:
            of_kind["difference"] = difference(subject, kind, model, stored, data[: plan.checked])
            tick()
        of_kind["evaluations"] = 1 + kind.rows(len(data[0][0]))
        of_kind["y_pred"] = {
            column: largest_difference(loops[column, kind.name].predictions, predictions)
            for column in present(plan.columns)
        }
        of_kind["model"] = {
            column: largest_difference(last(subject, loops[column, kind.name], data), at_end)
            for column in present(plan.columns)
        }
        found["kinds"][kind.name] = of_kind
    return found


def turns(subject: Subject, plan: Plan) -> tuple[int, int]:
    """How many observations are measured, and how many there are in a turn."""
    return (QUICK * plan.observations, LONG * plan.block) if subject.quick else (plan.observations, plan.block)


def steps(subject: Subject, kinds: Sequence[Kind], plan: Plan) -> int:
    """How often `measure` ticks."""
    n, block = turns(subject, plan)
    columns = present(plan.columns)
    checks = OURS in columns and plan.checked > 0
    return len(kinds) * (len(columns) + checks) + math.ceil(n / block)


def last(subject: Subject, loop: Loop, data: Sequence[Observation]) -> list[Any]:
    """Predictions of a loop's model as it is now for the last observations."""
    predict = subject.predict(loop.model)
    return [predict(x) for x, _ in data[-10:]]


def alone(subject: Subject, model: Any, stored: Sequence[Observation]) -> Loop:
    """A loop that predicts and learns, and has learnt the last of `stored`."""
    predict = subject.predict(model)
    for x, y in stored[-WARM:]:
        model.learn_one(x, y)
    return Loop(model, lambda x, y: predict(x))


def _loop(column: str, subject: Subject, kind: Kind, model: Any, stored: Sequence[Observation]) -> Loop:
    """A loop whose model has learnt the last of `stored`, and whose reservoirs are full of it."""
    if column == OURS:
        return Loop(model, filled(subject, kind, model, "interventional", WARM, stored).step)
    for x, y in stored[-WARM:]:
        model.learn_one(x, y)
    predict = subject.predict(model)
    beside: Naive | Reference
    if column == NAIVE:
        beside = Naive(predict, kind, stored[-kind.stored :])
    else:
        beside = Reference(predict, subject.loss, kind, stored[-kind.stored :])

    def step(x: dict[str, Any], y: Any) -> Any:
        y_pred = predict(x)
        beside.step(x, y)
        return y_pred

    return Loop(model, step)


def filled(subject: Subject, kind: Kind, model: Any, removal: str, n: int, stored: Sequence[Observation]) -> Ours:
    """Our explainers, which have stored all of `stored` and explained its last `n`; the model learns `WARM` of them."""
    # Reservoirs are full when time is taken.
    explainers = Ours(model, subject.loss, kind, removal)
    explained, learnt = len(stored) - n, len(stored) - WARM
    for i, (x, y) in enumerate(stored):
        if i >= explained:
            explainers.step(x, y)
        else:
            explainers.skip(x)
        if i >= learnt:
            model.learn_one(x, y)
    return explainers


def difference(
    subject: Subject, kind: Kind, model: Any, stored: Sequence[Observation], data: Sequence[Observation]
) -> float:
    """The largest difference of our importances from those of the same explainers on a plain callable.

    A callable has no fast path: each row is given to the model by itself.
    """
    fast, slow = freeze(model), freeze(model)
    predict = subject.predict(slow)
    pairs = ((fast, Ours(fast, subject.loss, kind)), (slow, Ours(lambda x: predict(x), subject.loss, kind)))
    largest = 0.0
    for x, y in (*stored[-len(data) :], *data):
        for own, explainers in pairs:
            explainers.step(x, y)
            own.learn_one(x, y)
        largest = max(largest, _worst(pairs[0][1].importance, pairs[1][1].importance))
    return largest


def _worst(found: Sequence[dict[str, float]], expected: Sequence[dict[str, float]]) -> float:
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        for name in one.keys() | other.keys():
            apart = abs(one.get(name, math.nan) - other.get(name, math.nan))
            if math.isnan(apart):
                return math.nan
            worst = max(worst, apart)
    return worst


def largest_difference(found: Sequence[Any], expected: Sequence[Any]) -> float | None:
    """Between two sequences of predictions; None where none was handed out."""
    worst = 0.0
    for one, other in zip(found, expected, strict=True):
        if one is None:
            return None
        pairs: Iterator[tuple[float, float]]
        if isinstance(other, dict):
            pairs = ((one.get(label, 0.0), other.get(label, 0.0)) for label in one.keys() | other.keys())
        else:
            pairs = iter([(one, other)])
        worst = max(worst, *(abs(a - b) for a, b in pairs))
    return worst

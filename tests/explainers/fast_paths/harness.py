"""Every fast path against the model itself: the same rows, after every observation, to 1e-12."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from attributary_explainers.evaluation.evaluator import Evaluator, NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, number_types, read_as_categories
from attributary_explainers.evaluation.schema import NotEncodableError, Schema, categorical_features
from attributary_explainers.pickling import dump_model, load_model
from attributary_explainers.typing import Array

TOLERANCE = 1e-12

Row = dict[Any, Any]


@dataclass
class Report:
    """What `follow` has seen. Assert on `covered`: a path that is never taken is equal to anything."""

    steps: int = 0
    covered: int = 0
    rows: int = 0
    worst: float = 0.0
    reasons: set[str] = field(default_factory=set)


def follow(
    model: Any,
    stream: Iterable[tuple[Row, Any]],
    *,
    number: bool = False,
    label: bool = False,
    n_rows: int = 12,
    fresh_every: int = 50,
    copy_every: int = 500,
    seed: int = 1,
    after: Callable[[int, Any], None] | None = None,
) -> Report:
    """Let the model learn the stream, and compare both paths before each observation is learnt.

    Parameters
    ----------
    number
        Whether `predict_one` is compared, of a regressor, instead of `predict_proba_one`.
    label
        Whether `predict_one` is compared, of a classifier that has no probabilities.
    n_rows
        Rows per observation: the observation, and mixtures of it with earlier ones, from one feature replaced to all.
    fresh_every
        So often a new evaluator is asked, too: it must give the same bits as the one that has seen everything.
    copy_every
        So often the evaluator is asked about a saved and loaded copy of the model, which must give the same bits, too.
    after
        Called with the number of the observation and the model when it has learnt it: to meddle with the model.
    """
    rng = random.Random(seed)
    past: list[Row] = []
    report = Report()
    evaluator: Evaluator | None = None
    schema: Schema | None = None
    for step, (x, y) in enumerate(stream):
        report.steps += 1
        rows = list(mixtures(x, past, n_rows, rng))
        ask = model.predict_one if number or label else model.predict_proba_one
        naive = [ask(dict(row)) for row in rows]
        if label:
            naive = [{} if named is None else {named: 1.0} for named in naive]
        categorical = read_as_categories(model) & x.keys() | categorical_features(x)
        if schema is None or schema.keys != x.keys() or schema.categorical != categorical:
            schema, evaluator = Schema(x, categorical, number_types(model)), None
        try:
            X = schema.encode_many(rows)
            if evaluator is None:
                evaluator = make_evaluator(model, schema)
            found = evaluator.predict(X).copy()
            report.covered += 1
            report.rows += len(rows)
            check(found, evaluator.labels, naive, report, f"step {step}")
            if step % fresh_every == 0:
                same_bits(found, evaluator, make_evaluator(model, schema), X, f"a new evaluator at step {step}")
            if step and step % copy_every == 0:
                copied = make_evaluator(
                    load_model(dump_model(model)), Schema(schema.features, schema.categorical, schema.numbers)
                )
                again = copied.predict(copied_rows(copied, rows))
                assert np.array_equal(again, found, equal_nan=True), f"a loaded copy gives other bits at step {step}"
        except (NotCoveredError, NotEncodableError) as reason:
            report.reasons.add(str(reason))
        model.learn_one(dict(x), y)
        if after is not None:
            after(step, model)
        if len(past) < 100:
            past.append(dict(x))
        else:
            past[rng.randrange(100)] = dict(x)
    return report


def all_covered(model: Any, stream: Iterable[tuple[Row, Any]], *, uncovered: int = 0, **options: Any) -> Report:
    """Follow the stream, and check that all its observations take the fast path, less `uncovered` of them."""
    report = follow(model, stream, **options)
    assert report.steps >= 40, "too short to show anything"
    assert report.steps - report.covered == uncovered, report.reasons
    return report


def learnt(model: Any, stream: Iterable[tuple[Row, Any]]) -> Any:
    for x, y in stream:
        model.learn_one(x, y)
    return model


def predicted(model: Any, rows: list[Row], schema: Schema | None = None) -> Array:
    """Predictions of a new evaluator."""
    schema = Schema(rows[0]) if schema is None else schema
    return make_evaluator(model, schema).predict(schema.encode_many(rows))


def by_the_model(model: Any, rows: Iterable[Row], labels: Sequence[Any] = (False, True)) -> Array:
    return np.array([[model.predict_proba_one(row)[label] for label in labels] for row in rows])


def equals_the_model(found: Array, model: Any, rows: Iterable[Row], labels: Sequence[Any] = (False, True)) -> None:
    assert np.abs(found - by_the_model(model, rows, labels)).max() <= TOLERANCE


def refused(match: str, model: Any, schema: Schema, *, to_predict: bool = False) -> None:
    """Check that a model gets no evaluator, or one that does not predict."""

    def ask() -> None:
        evaluator = make_evaluator(model, schema)
        if to_predict:
            evaluator.predict(np.zeros((1, len(schema))))

    with pytest.raises(NotCoveredError, match=match):
        ask()


def copied_rows(evaluator: Evaluator, rows: list[Row]) -> Any:
    schema = evaluator.schema  # type: ignore[attr-defined]  # every evaluator of ours keeps its schema
    return schema.encode_many(rows)


def same_bits(found: Any, evaluator: Evaluator, other: Evaluator, X: Any, what: str) -> None:
    again = other.predict(X)
    assert other.labels == evaluator.labels, what
    assert np.array_equal(again, found, equal_nan=True), f"{what} gives other bits"


def check(found: Any, labels: tuple[Any, ...] | None, naive: list[Any], report: Report, where: str) -> None:
    assert len(found) == len(naive), where
    for row, expected in zip(found.tolist(), naive, strict=True):
        if not isinstance(expected, dict):
            assert len(row) == 1, where
            close(row[0], float("nan") if expected is None else expected, report, where)
            continue
        assert labels is not None, where
        if not expected:
            assert all(value != value for value in row) or not row, f"{where}: {row} where the model predicts nothing"
            continue
        assert set(expected) <= set(labels), f"{where}: {expected} with the labels {labels}"
        for label, value in zip(labels, row, strict=True):
            close(value, expected.get(label, 0.0), report, where)


def close(value: float, expected: float, report: Report, where: str) -> None:
    if expected != expected:
        assert value != value, f"{where}: {value} where the model gives NaN"
        return
    difference = abs(value - expected) / max(1.0, abs(expected))
    report.worst = max(report.worst, difference)
    assert difference <= TOLERANCE, f"{where}: {value!r}, and the model gives {expected!r}"


def mixtures(x: Row, past: list[Row], n: int, rng: random.Random) -> Iterator[Row]:
    """`x`, and rows of it and of earlier observations: one feature replaced, several, all."""
    yield dict(x)
    names = list(x)
    for i in range(n - 1):
        if not past:
            yield dict(x)
            continue
        other = rng.choice(past)
        k = 1 if i % 2 else rng.randint(1, len(names))
        chosen = rng.sample(names, k)
        yield {**x, **{name: other[name] for name in chosen if name in other}}

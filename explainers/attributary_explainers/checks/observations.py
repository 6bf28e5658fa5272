"""Checks of an explainer on ordinary and odd observations."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ..errors import ModelError
from ..incremental.base import IncrementalExplainer
from ..typing import Features
from .subject import Stream, Subject, all_finite, as_text, expect, expect_equal, explain, feed, learn, properties, spoil

ODD_VALUES = (3, "text", None, math.nan, True, math.inf, -math.inf, (1, 2), [1], 10**400, Decimal("0.5"), 0.25)
"""Values of one feature that changes its type."""


def is_made(subject: Subject) -> None:
    """The factory makes a new explainer of the given model on each call."""
    explainer, model = subject.new(0)
    other, _ = subject.new(0)
    expect(isinstance(explainer, IncrementalExplainer), "the factory to make an IncrementalExplainer", explainer)
    expect(explainer is not other, "the factory to make a new explainer with each call", "the same one twice")
    expect(explainer.model is model, "explainer.model to be the model that the factory was handed", explainer.model)
    name = getattr(explainer, "name", None)
    expect(isinstance(name, str) and bool(name), "a class attribute `name` that is text", repr(name))


def before_any_data(subject: Subject) -> None:
    """Every property can be read before any data, and both counts are 0."""
    explainer, _ = subject.new(0)
    for name in properties(explainer):
        getattr(explainer, name)
    explainer.snapshot()
    counts = explainer.n_observations, explainer.n_skipped
    expect(counts == (0, 0), "n_observations and n_skipped to be 0 before any observation", counts)


def input_unchanged(subject: Subject) -> None:
    """The observation is not changed, neither its values nor their order."""
    explainer, model = subject.new(0)
    for x, y in subject.stream:
        given, before = dict(x), copy.deepcopy(dict(x))
        explainer.explain_one(given, y)
        expect(
            given == before and list(given) == list(before), f"x to stay {before!r} through explain_one", f"{given!r}"
        )
        learn(model, x, y)


def input_not_kept(subject: Subject) -> None:
    """The explainer keeps a copy: the caller may reuse its dict."""
    explainer, model = subject.new(0)
    reused: dict[Any, Any] = {}
    trace = []
    for x, y in subject.stream:
        reused.clear()
        reused.update(x)
        trace.append(as_text(explainer, explainer.explain_one(reused, y)))
        reused.update(dict.fromkeys(reused, 1e9), intruder=1e9)
        learn(model, x, y)
    expect_equal(subject.said(), trace, "results to be the same where the caller reuses one dict for all observations")


def results_not_shared(subject: Subject) -> None:
    """The caller may change results without changing the explainer."""
    explainer, model = subject.new(0)
    trace = []
    for x, y in subject.stream:
        result = explainer.explain_one(dict(x), y)
        trace.append(as_text(explainer, result))
        spoil(result)
        learn(model, x, y)
    expect_equal(subject.said(), trace, "results to be the same where the caller empties each that it gets")


def features_come_and_go(subject: Subject) -> None:
    """Features may come, go and move: all rows count, results stay finite."""
    explainer, _ = subject.new()
    for x, result in explain(explainer, ragged(subject.stream)):
        expect(all_finite(result), f"finite results after {dict(x)!r}", result)


def ragged(stream: Stream) -> Iterator[tuple[Features, Any]]:
    """Yield shuffled rows of two thirds of the features; add a feature late."""
    draw = random.Random(1)
    for i, (x, y) in enumerate(stream):
        names = [name for name in x if draw.random() < 2 / 3] or list(x)
        draw.shuffle(names)
        row = {name: x[name] for name in names}
        if 3 * i > 2 * len(stream):
            row["a feature that comes late"] = draw.gauss(0.0, 1.0)
        yield row, y


def empty_observations(subject: Subject) -> None:
    """Observations without features are counted, and results stay finite."""
    explainer, _ = subject.new()
    first, *others = subject.stream
    for x, result in explain(explainer, [({}, first[1]), *others, ({}, first[1])]):
        expect(all_finite(result), f"finite results after {dict(x)!r}", result)


def feature_order(subject: Subject) -> None:
    """The order of the features in x means nothing.

    With draws it decides which feature gets which, and so the noise: results are to be within five standard errors,
    where the explainer has such. Without a seed they are to be the same but for rounding.
    """
    ordinary = [*subject.stream] * 3
    shuffled, draw = [], random.Random(2)
    for x, y in ordinary:
        names = list(x)
        draw.shuffle(names)
        shuffled.append(({name: x[name] for name in names}, y))
    found = []
    for stream in (ordinary, shuffled):
        explainer, _ = subject.new()
        found.append((explain(explainer, stream)[-1][1], getattr(explainer, "std_error", {})))
    (one, error_one), (other, error_other) = found
    expect(
        set(one) == set(other) if isinstance(one, dict) and isinstance(other, dict) else type(one) is type(other),
        "results for the same features whatever their order",
        (one, other),
    )
    if not subject.seeded:
        expect(_like(one, other, 1e-6), "the same results where features come in another order", (one, other))
    elif isinstance(one, dict):
        for name in set(one) & set(error_one) & set(error_other):
            margin = 5.0 * math.hypot(error_one[name], error_other[name]) + 1e-9
            expect(
                not abs(one[name] - other[name]) > margin,
                f"the result for {name!r} to change by less than {margin:.3g} where features come in another order",
                f"{one[name]!r} and {other[name]!r}",
            )


def _like(one: Any, other: Any, tolerance: float) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_like(one[key], other[key], tolerance) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_like(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def types_change(subject: Subject) -> None:
    """Values of odd types, infinite or huge are counted without exception."""
    explainer, _ = subject.new()
    name = next(iter(subject.stream[0][0]))
    odd = [
        ({**x, name: ODD_VALUES[i // 2 % len(ODD_VALUES)]} if i % 2 else x, y)
        for i, (x, y) in enumerate(subject.stream)
    ]
    for x, result in explain(explainer, odd):
        expect(all_finite(result), f"finite results after {dict(x)!r}", result)
    _goes_on(subject, explainer, "values of other types")


def missing_values(subject: Subject) -> None:
    """None and NaN are counted, and later rows are explained as before."""
    explainer, _ = subject.new()
    draw = random.Random(3)
    holes = []
    for x, y in subject.stream:
        holes.append(({name: draw.choice((value, value, value, None, math.nan)) for name, value in x.items()}, y))
    for x, result in explain(explainer, holes):
        expect(all_finite(result), f"finite results after {dict(x)!r}", result)
    _goes_on(subject, explainer, "missing values")


def _goes_on(subject: Subject, explainer: IncrementalExplainer, after: str) -> None:
    before = explainer.n_observations
    results = explain(explainer, subject.stream)
    expect(explainer.n_observations > before, f"observations to be explained again after {after}", "none was")
    expect(all_finite(results[-1][1]), f"finite results again after {after}", results[-1][1])


def names_of_any_type(subject: Subject) -> None:
    """Feature names may be hashables of mixed types, and come back as given.

    Nothing is checked where the model itself cannot sort such names.
    """
    plain = list(subject.stream[0][0])
    names = {name: (i, (name, 1), f"{name}!", float(i) + 0.5, None)[i % 5] for i, name in enumerate(plain)}
    renamed = [({names.get(name, name): value for name, value in x.items()}, y) for x, y in subject.stream]
    if not subject.model_takes(renamed):
        return
    explainer, model = subject.new(0)
    if hasattr(explainer, "know_names"):
        explainer.know_names()  # its parameters may name features of the stream, which are called otherwise here
    expected, model_expected = subject.new(0)
    for (x, y), (x_plain, _) in zip(renamed, subject.stream, strict=True):
        result, wanted = explainer.explain_one(dict(x), y), expected.explain_one(dict(x_plain), y)
        learn(model, x, y)
        learn(model_expected, x_plain, y)
        if isinstance(wanted, dict) and set(wanted) <= set(plain):
            wanted_names = {(type(names[name]), names[name]) for name in wanted}
            seen_names = {(type(name), name) for name in result}
            expect(seen_names == wanted_names, f"results for exactly {[names[name] for name in wanted]!r}", result)
    counts, wanted_counts = ((e.n_observations, e.n_skipped) for e in (explainer, expected))
    expect(counts == wanted_counts, f"{wanted_counts} observations explained and skipped, as with text names", counts)


def labels_of_any_type(subject: Subject) -> None:
    """Results are the same for labels of any type, or of several at once.

    For labels of several types, which have no order, an explainer may also raise ModelError. Labels that the model
    itself cannot learn are left out.
    """
    plain = list(dict.fromkeys(y for _, y in subject.stream))
    plain.sort(key=str)
    for kind, made in (
        ("int", lambda i, y: i),
        ("tuple", lambda i, y: (str(y), i)),
        ("bool", lambda i, y: bool(i)),
        ("mixed", lambda i, y: str(y) if i else i),
    ):
        if kind == "bool" and len(plain) > 2:
            continue
        labels = {y: made(i, y) for i, y in enumerate(plain)}
        relabelled = [(x, labels[y]) for x, y in subject.stream]
        if not subject.model_takes(relabelled):
            continue
        expected, model_expected = subject.new(0)
        explainer, model = subject.new(0)
        wanted = feed(expected, model_expected, subject.stream)
        try:
            seen = feed(explainer, model, relabelled)
        except ModelError:
            if kind == "mixed":
                continue
            raise
        expect_equal(wanted, seen, f"results to be the same where the labels are {list(labels.values())!r}")

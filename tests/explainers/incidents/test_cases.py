"""What users tried on whole streams, each with the sentence that they are left with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from river import forest, linear_model, optim, preprocessing, tree
from river.datasets import synth

from tests.explainers.incidents.told import Bank, Row, Told, customers, told_of

AT = 3000
"""Observations before something happens."""
STANDS_STILL: dict[str, Any] = {"learn": False, "loss": "brier"}


def after(rows: Iterator[Row], damage: Callable[[dict[str, Any]], dict[str, Any]]) -> Iterator[Row]:
    return ((damage(x) if i >= AT else x, y) for i, (x, y) in enumerate(rows))


def words(told: Told) -> list[tuple[Any, ...]]:
    return [tuple(one[name] for name in ("number", "what", "life", "severity", "reason")) for one in told]


def test_the_drift_of_the_demo_is_one_incident_in_three_words() -> None:
    rows = chain(synth.Agrawal(1, seed=1).take(5000), synth.Agrawal(2, seed=2).take(2400))
    model = forest.ARFClassifier(n_models=10, seed=1)
    told = told_of(model, rows, learn=True, alpha=0.004, explainers={"pfi": {"n_samples": 2}})
    assert words(told) == [
        (1, "changed", "suspected", "info", "suspected"),
        (1, "changed", "confirmed", "warning", "confirmed"),
        (1, "changed", "over", "warning", "returned"),
    ]
    assert 5000 < told[0]["observation"] <= 5100
    assert told[-1]["since"]["low"] <= 5001 <= told[-1]["since"]["high"]
    assert told[-1]["sentence"] == (
        "The data of bank have changed, and it has adapted. Nothing to do. Since observation 5 002, errors went from "
        "17.2 % to 33.3 %, and are 15.1 % now. It relies more on elevel and less on salary and commission."
    )


def test_a_learner_that_settles_at_four_times_what_it_lost_is_worse() -> None:
    rng = np.random.default_rng(1)

    def rows() -> Iterator[Row]:
        for i in range(7200):
            a, b, c = rng.standard_normal(3).tolist()
            is_right = rng.random() >= (0.04 if i < AT else 0.15)
            yield {"a": a, "b": b, "c": c}, bool((a if i < AT else b) > 0.0) == bool(is_right)

    told = told_of(tree.HoeffdingAdaptiveTreeClassifier(seed=1), rows(), learn=True)
    assert words(told) == [
        (1, "changed", "suspected", "info", "suspected"),
        (1, "changed", "confirmed", "warning", "confirmed"),
        (1, "changed", "confirmed", "warning", "lasts"),
        (1, "worse", "confirmed", "critical", "raised"),
        (1, "worse", "confirmed", "critical", "lasts"),
    ]
    assert not any("has adapted" in one["sentence"] for one in told)
    assert next(iter(told[-1]["features"])) == "b"
    assert told[-1]["sentence"] == (
        "bank is still worse. Act now: train it again. Since observation 3 004, errors are 15.6 %, and were 4.00 % "
        "before. It relies more on b."
    )


def test_an_age_in_months_is_named_with_its_factor_and_is_never_harder() -> None:
    told = told_of(Bank(), after(customers(5200), lambda x: {**x, "age": 12 * x["age"]}), **STANDS_STILL)
    assert words(told) == [
        (1, "inputs", "confirmed", "warning", "confirmed"),
        (1, "inputs", "confirmed", "critical", "raised"),
        (1, "inputs", "confirmed", "critical", "lasts"),
    ]
    assert AT < told[0]["observation"] <= AT + 100
    assert {(next(iter(one["features"])), one["advice"]) for one in told} == {("age", "look_at_inputs")}
    assert told[-1]["sentence"] == (
        "age of bank is still broken. Act now: check the source of age. age is 216 to 1 056, and was 18 to 88 before "
        "(12 times what it was). Since observation 3 001, errors are 49.2 %, and were 12.7 % before."
    )


def test_a_category_that_is_spelt_anew_is_named_though_hardly_more_is_lost() -> None:
    spelt = after(customers(5200), lambda x: {**x, "relationship": x["relationship"].upper()})
    told = told_of(Bank(), spelt, **STANDS_STILL)
    assert words(told) == [
        (1, "inputs", "confirmed", "warning", "confirmed"),
        (1, "inputs", "over", "warning", "settled"),
    ]
    assert AT < told[0]["observation"] <= AT + 100
    assert next(iter(told[0]["features"])) == "relationship"
    _, errors = told[-1]["effects"]
    assert (errors["before"]["value"], errors["after"]["value"]) == pytest.approx((0.13, 0.153), abs=0.01)
    assert told[-1]["sentence"] == (
        "relationship of bank has not gone back. Can wait until morning: check the source of relationship. "
        "relationship has values that never came before: 'HUSBAND', 'OWN-CHILD', 'OTHER' …. Since observation 3 001, "
        "errors went from 12.7 % to 15.6 %, and are 15.0 % now."
    )


@pytest.mark.parametrize("learns", [False, True])
def test_a_few_rows_that_any_model_finds_hard_make_nothing_worse(learns: bool) -> None:
    def rows() -> Iterator[Row]:
        for i, (x, y) in enumerate(customers(5200)):
            is_hard = AT <= i < AT + 32
            yield ({"age": 53, "relationship": "Not-in-family", "capital": -0.125}, i % 2 == 0) if is_hard else (x, y)

    if learns:
        told = told_of(tree.HoeffdingAdaptiveTreeClassifier(seed=1), rows(), learn=True)
        assert {(one["what"], one["severity"]) for one in told} == {("changed", "info")}
        assert [one["life"] for one in told] == ["suspected", "withdrawn"]
    else:
        assert not told_of(Bank(), rows(), **STANDS_STILL)


@pytest.mark.long
def test_models_that_change_together_each_have_one_incident_and_the_same_words() -> None:
    said, onsets = set(), []
    for seed in range(10, 18):
        rows, rng = list(customers(AT + 1200, seed)), np.random.default_rng(seed)
        capitals = iter(rng.permutation([x["capital"] for x, _ in rows[AT:]]).tolist())
        told = told_of(Bank(), after(iter(rows), lambda x, of=capitals: {**x, "capital": next(of)}), **STANDS_STILL)
        assert [(one["number"], one["life"]) for one in told] == [(1, "suspected"), (1, "confirmed")]
        last = told[-1]
        said.add((last["what"], last["severity"], last["advice"], next(iter(last["features"])), last["headline"]))
        onsets.append(last["since"]["observation"])
    assert said == {("worse", "critical", "look_at_inputs", "capital", "bank is worse")}
    assert max(abs(onset - AT - 1) for onset in onsets) <= 150


def test_a_model_that_stands_still_stays_worse_though_the_change_explainer_finds_its_data_harder() -> None:
    """The banner of the page said *followed* while the alert said *worse*: `told_of` checks that none says less."""
    rows, rng = list(customers(AT + 2300, 16)), np.random.default_rng(16)
    capitals = iter(rng.permutation([x["capital"] for x, _ in rows[AT:]]).tolist())
    told = told_of(Bank(), after(iter(rows), lambda x: {**x, "capital": next(capitals)}), **STANDS_STILL)
    assert "harder" in {one["said"] for one in told[-1]["evidence"]}
    assert words(told) == [
        (1, "worse", "suspected", "warning", "suspected"),
        (1, "worse", "confirmed", "critical", "confirmed"),
        (1, "worse", "confirmed", "critical", "lasts"),
    ]
    assert next(iter(told[-1]["features"])) == "capital"
    assert told[-1]["sentence"] == (
        "bank is still worse. Act now: check the source of capital, and the labels; if they are right, train it again. "
        "Since observation 3 023, errors are 32.7 %, and were 12.5 % before."
    )


def far_from_zero() -> Iterator[Row]:
    rng = np.random.default_rng(1)
    for _ in range(4500):
        a, b = rng.normal(1e4, 1e3, 2).tolist()
        yield {"a": a, "b": b}, 0.003 * a - 0.002 * b + float(rng.standard_normal())


def autocorrelated() -> Iterator[Row]:
    rng, level = np.random.default_rng(1), 0.0
    for i in range(4500):
        level = 0.98 * level + float(rng.standard_normal())
        yield {"lag": level, "hour": float(i % 24)}, 5e7 * (1.0 + 0.1 * level + 0.02 * float(rng.standard_normal()))


@pytest.mark.parametrize(
    ("model", "rows", "sentence"),
    [
        (
            linear_model.LinearRegression(), far_from_zero,
            "bank is still useless: worse than always predicting the same. Act now: train it again. Since "
            "observation 1, its average error is 1.01 × 10¹⁸, 3.44 × 10¹⁷ times that of a constant.",
        ),
        (
            tree.HoeffdingAdaptiveTreeRegressor(seed=1, leaf_prediction="model"), autocorrelated,
            "bank is still useless: worse than always predicting the same. Act now: train it again. Since "
            "observation 1, its average error is 885 billion, 37 550 times that of a constant.",
        ),
    ],
)  # fmt: skip
def test_a_regressor_that_diverges_is_useless(model: Any, rows: Callable[[], Iterator[Row]], sentence: str) -> None:
    told = told_of(model.clone(), rows(), learn=True)
    sure = [one for one in told if one["life"] != "suspected"]
    assert {(one["number"], one["what"], one["life"], one["severity"], one["advice"]) for one in sure} == {
        (1, "worse", "confirmed", "critical", "retrain")
    }
    assert [one["reason"] for one in sure] == ["confirmed", "lasts"]
    assert sure[0]["observation"] == 2000
    assert sure[0]["headline"] == "bank is useless: worse than always predicting the same"
    assert sure[-1]["sentence"] == sentence


@pytest.mark.share(2, "scale", "kind")
@pytest.mark.parametrize(("scale", "signal"), [(0.01, 1.0), (1e6, 1.0), (1.0, 0.0), (1e6, 0.05)])
@pytest.mark.parametrize("kind", ["linear", "tree"])
def test_a_healthy_regressor_is_never_useless(scale: float, signal: float, kind: str) -> None:
    rows = (
        ({"a": a, "b": b}, scale * (signal * (2.0 * a - b) + noise))
        for a, b, noise in np.random.default_rng(2).standard_normal((5000, 3)).tolist()
    )
    linear = preprocessing.TargetStandardScaler(linear_model.LinearRegression(optimizer=optim.SGD(0.01)))
    told = told_of(linear if kind == "linear" else tree.HoeffdingTreeRegressor(), rows, learn=True)
    assert not [one for one in told if one["what"] == "worse" or "constant" in {of["name"] for of in one["effects"]}]

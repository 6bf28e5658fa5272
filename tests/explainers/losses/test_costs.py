"""Costs of two classes: the realised cost of the decision that is expected to cost least."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import ensemble, linear_model, naive_bayes, preprocessing

from attributary_explainers import (
    BiasedImportanceWarning,
    ChangeExplainer,
    ImportanceChange,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    ModelError,
    Monitor,
    SnapshotError,
    as_loss,
    batch_sage,
    exact_sage,
    expected_pfi,
)

COSTS = {"cost": {"false_negative": 100, "false_positive": 1}}
NAME = "cost(false_negative=100, false_positive=1)"
costs = st.integers(1, 1000)
shares = st.integers(0, 1000).map(lambda n: Fraction(n, 1000))


def of(false_negative: float, false_positive: float, **more: Any) -> dict[str, Any]:
    return {"cost": {"false_negative": false_negative, "false_positive": false_positive, **more}}


def naive(p: dict[Any, float], y: Any, false_negative: float, false_positive: float, positive: Any) -> float:
    """Decide for the class whose expected cost is least, and pay for it."""
    (negative,) = p.keys() - {positive}
    expected = {positive: false_positive * p[negative], negative: false_negative * p[positive]}
    decided = positive if expected[positive] <= expected[negative] else negative
    return 0.0 if decided == y else false_negative if y == positive else false_positive


@given(costs, costs, shares, st.booleans(), st.booleans())
def test_a_decision_is_for_the_least_expected_cost_and_its_own_cost_is_the_loss(
    fn: int, fp: int, share: Fraction, y: bool, turned: bool
) -> None:
    if fn * share == fp * (1 - share) and share not in (Fraction(1, 2), 1):
        return  # a tie, which is one by the last bit of a float
    p = {False: float(1 - share), True: float(share)}
    positive = not turned
    given = of(fn, fp, positive=False) if turned else of(fn, fp)
    assert as_loss(given)(y, p) == naive(p, y, fn, fp, positive)
    assert as_loss(given)(y, dict(reversed(p.items()))) == naive(p, y, fn, fp, positive)


@given(costs, costs, shares)
def test_where_probabilities_hold_the_mean_is_the_least_expected_cost(fn: int, fp: int, share: Fraction) -> None:
    p, loss = {"no": float(1 - share), "yes": float(share)}, as_loss(of(fn, fp))
    mean = p["yes"] * loss("yes", p) + p["no"] * loss("no", p)
    assert mean == pytest.approx(min(fn * p["yes"], fp * p["no"]), rel=1e-12, abs=1e-12)


@given(shares)
def test_equal_costs_count_wrong_labels(share: Fraction) -> None:
    p = {0: float(1 - share), 1: float(share)}
    if p[0] != p[1]:
        assert [as_loss(of(7, 7))(y, p) for y in p] == [7.0 * as_loss("zero_one")(y, p) for y in p]


def test_what_it_is_called_and_how_large_it_is() -> None:
    loss = as_loss(COSTS)
    assert (loss.name, loss.unit, loss.largest, loss.is_named) == (NAME, "cost", 100.0, True)
    assert loss.statement == f"{NAME} loss: cost, at most 100"
    assert as_loss(of(100.0, 1.0)) != as_loss(of(100.5, 1.0))
    assert as_loss(of(0.1, 2.5e20, positive="fraud")).name == (
        "cost(false_negative=0.1, false_positive=2.5e+20, positive='fraud')"
    )
    assert loss("yes", {"no": 1.0}) == loss.largest
    assert as_loss(of(1, 8))("no", {"yes": 1.0}) == 8.0
    assert loss("yes", {"yes": 1.0}) == 0.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("cost", "loss must be costs by name, as "),
        ({"cost": 100}, "loss must be costs by name, as "),
        ({"costs": {}}, "loss must be costs by name, as "),
        ({"cost": {"false_negative": 1}}, "loss must be costs by name, as "),
        ({"cost": {"false_negative": 1, "false_positive": 1, "falsepositive": 2}}, "loss must be costs by name, as "),
        ({**COSTS, "brier": {}}, "loss must be costs by name, as "),
        (of(0, 1), "loss.cost.false_negative must be a number > 0 and < 1e+150, got 0"),
        (of(1, -1), "loss.cost.false_positive must be a number > 0 and < 1e+150, got -1"),
        (of(1, math.inf), "loss.cost.false_positive must be a number > 0 and < 1e+150, got inf"),
        (of(math.nan, 1), "loss.cost.false_negative must be a number > 0 and < 1e+150, got nan"),
        (of("100", 1), "loss.cost.false_negative must be a number > 0 and < 1e+150, got '100'"),  # type: ignore[arg-type]
    ],
)
def test_what_are_no_costs_is_refused_in_one_line(given: Any, said: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(said)}.*$"):
        as_loss(given)


def test_more_than_two_classes_are_refused_in_one_line() -> None:
    loss = as_loss(COSTS)
    said = "costs are of two classes, and the model and the label name 'a', 'b', 'c': take another loss, as brier"
    for y, p in (("a", {"a": 0.5, "b": 0.25, "c": 0.25}), ("c", {"a": 0.5, "b": 0.5})):
        with pytest.raises(ModelError, match=f"^{re.escape(said)}$"):
            loss(y, p)
    pfi = IncrementalPFI(lambda x: dict.fromkeys("abc", 1 / 3), loss=COSTS, seed=1)
    pfi.explain_one({"a": 1.0}, "a")  # there is nothing to draw from, and nothing to pay for
    with pytest.raises(ModelError, match="costs are of two classes"):
        pfi.explain_one({"a": 2.0}, "a")
    with pytest.raises(ModelError, match=r"^costs are of 'fraud' and one other class, .* name 'Fraud', 'ok'"):
        as_loss(of(9, 1, positive="fraud"))("ok", {"Fraud": 0.5, "ok": 0.5})


def test_a_regressor_is_refused() -> None:
    with pytest.raises(ModelError, match="is a regressor: use the loss absolute or squared"):
        IncrementalPFI(linear_model.LinearRegression(), loss=COSTS)


RULE: list[tuple[dict[str, float], bool]] = [
    ({"a": float(a), "b": float(b), "c": float(c)}, bool((a + b + c * a) % 5 == 0))
    for a in range(4)
    for b in range(3)
    for c in range(2)
]
XS, YS = [x for x, _ in RULE], [y for _, y in RULE]


def scored(x: dict[str, float]) -> dict[bool, float]:
    p = 1.0 / (1.0 + math.exp(4.0 + x["a"] - 1.5 * x["b"] + 0.5 * x["a"] * x["c"]))
    return {True: p, False: 1.0 - p}


def paid(x: dict[str, float], y: bool) -> float:
    return naive(scored(x), y, 100.0, 1.0, True)


def test_permutation_importance_is_the_growth_of_the_cost_over_all_pairs() -> None:
    found = expected_pfi(scored, RULE, loss=COSTS).importance
    n = len(XS)
    for feature in "abc":
        growth = [
            paid({**XS[i], feature: XS[j][feature]}, YS[i]) - paid(XS[i], YS[i])
            for i in range(n)
            for j in range(n)
            if i != j
        ]
        assert found[feature] == pytest.approx(math.fsum(growth) / len(growth), rel=1e-12, abs=1e-12)
    assert found["b"] > 1.0


def test_sage_values_are_the_shapley_values_of_the_cost_of_the_decision_by_the_mean() -> None:
    def value(kept: str) -> float:
        total = 0.0
        for x, y in RULE:
            mean = float(np.mean([scored({**z, **{f: x[f] for f in kept}})[True] for z in XS]))
            total += naive({True: mean, False: 1.0 - mean}, y, 100.0, 1.0, True)
        return total / len(RULE)

    def gain(kept: str, feature: str) -> float:
        return value(kept) - value(kept + feature)

    found = exact_sage(scored, RULE, loss=COSTS).importance
    for feature, one, other in (("a", "b", "c"), ("b", "a", "c"), ("c", "a", "b")):
        ends = (gain("", feature) + gain(one + other, feature)) / 3.0
        assert found[feature] == pytest.approx(ends + (gain(one, feature) + gain(other, feature)) / 6.0, abs=1e-9)
    assert sum(found.values()) == pytest.approx(value("") - value("abc"), abs=1e-9)


def test_batch_sage_sums_to_what_the_decisions_of_all_features_save() -> None:
    found = batch_sage(scored, XS, YS, loss=COSTS, n_samples=12, seed=1)
    mean = float(np.mean([scored(x)[True] for x in XS]))
    of_mean = np.mean([naive({True: mean, False: 1.0 - mean}, y, 100.0, 1.0, True) for y in YS])
    assert sum(found.importance.values()) == pytest.approx(of_mean - np.mean([paid(x, y) for x, y in RULE]), abs=1e-9)


def stream(n: int, seed: int = 1) -> list[tuple[dict[str, float], bool]]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3)).tolist()
    return [({"a": a, "b": b, "c": c}, bool(a + 0.3 * b + rng.normal() > 2.0)) for a, b, c in rows]


LEARNERS: dict[str, Callable[[], Any]] = {
    "probabilities": naive_bayes.GaussianNB,
    "scaled": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "labels": lambda: ensemble.VotingClassifier([naive_bayes.GaussianNB(), linear_model.LogisticRegression()]),
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.filterwarnings("ignore::attributary_explainers.BiasedImportanceWarning")
def test_a_stop_changes_nothing(kind: Any, make: Callable[[], Any]) -> None:
    model, few = make(), of(5, 1)
    explainer = kind(model, loss=few, alpha=0.02, seed=1)
    for x, y in stream(300):
        explainer.explain_one(x, y)
        model.learn_one(x, y)
    again = kind.from_snapshot(explainer.snapshot(), model, loss=few)
    for x, y in stream(50, seed=2):
        assert again.explain_one(x, y) == explainer.explain_one(x, y)
    assert any(explainer.importance.values())
    with pytest.raises(SnapshotError, match=re.escape(f"taken with the loss {as_loss(few).name!r}, none was passed")):
        kind.from_snapshot(explainer.snapshot(), model)
    with pytest.raises(SnapshotError, match="pass that loss"):
        kind.from_snapshot(explainer.snapshot(), model, loss=COSTS)


def test_sage_says_that_few_draws_are_biased_where_a_decision_is_a_tie() -> None:
    said = f"{re.escape(NAME)} counts the cheapest decision of a mean over draws; with 5 draws it is biased"
    with pytest.warns(BiasedImportanceWarning, match=said):
        IncrementalSAGE(naive_bayes.GaussianNB(), loss=COSTS, n_samples=5)


def test_a_monitor_measures_in_costs_and_goes_on_from_a_snapshot() -> None:
    def made() -> Monitor:
        return Monitor(in_background=False, on_error="raise").add("m", scored, loss=COSTS, change=None, alpha=0.05)

    monitor, rows = made(), [RULE[i % len(RULE)] for i in range(120)]
    for x, y in rows:
        monitor.observe("m", x, y)
    (watched,) = monitor._models.values()
    weights = 0.95 ** np.arange(len(rows))[::-1]
    assert watched.model_loss.value == pytest.approx(np.average([paid(x, y) for x, y in rows], weights=weights))
    alone = IncrementalPFI.from_snapshot(watched.explainers["pfi"].snapshot(), scored, loss=COSTS)
    again = made().restore(monitor.snapshot())
    for x, y in rows[:50]:
        monitor.observe("m", x, y)
        again.observe("m", x, y)
        alone.explain_one(x, y)
    assert again.importances("m")["pfi"] == monitor.importances("m")["pfi"] == alone.importance
    with pytest.raises(SnapshotError, match=r"false_negative=100.*false_negative=99"):
        Monitor(in_background=False).add("m", scored, loss=of(99, 1), change=None, alpha=0.05).restore(
            monitor.snapshot()
        )


def test_a_change_is_told_in_costs_and_judged_by_probabilities() -> None:
    rng, model = np.random.default_rng(1), preprocessing.StandardScaler() | linear_model.LogisticRegression()
    change = ChangeExplainer(model, loss=of(5, 1), window=200, seed=1)
    assert change.loss_of_verdicts.name == "brier"
    told: list[ImportanceChange] = []
    for n in range(3000):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        y = x["a" if n < 1500 else "b"] > 0.5
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        for event in change.update(x, y, y_pred):
            told += getattr(event, "importances", {}).values()
    assert told, "the rule is another one"
    for one in told:
        assert (one.loss, one.loss_unit, one.loss_largest) == (as_loss(of(5, 1)).name, "cost", 5.0)
        assert one.after["b"] > one.before["b"]

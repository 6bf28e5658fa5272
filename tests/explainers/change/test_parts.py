"""The two parts of a change against closed forms: their sum, their errors, what is named, and whose doing it is."""

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import neighbors

from attributary_explainers import ChangeExplainer, freeze
from attributary_explainers.change.discrepancy import as_distance
from attributary_explainers.change.reference import (
    Measure,
    MeasuredImportance,
    Reference,
    change_between,
    change_on_one_data_set,
)
from attributary_explainers.losses.losses import as_loss
from tests.explainers.naive_change import found_in
from tests.explainers.oracles import POINTS, exact_sage, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import Linear, SwitchingConcept

VALUES = st.floats(-5.0, 5.0)
TABLE = st.lists(st.tuples(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), VALUES), min_size=2, max_size=6)
WEIGHTS = st.dictionaries(st.sampled_from("abc"), VALUES)


def measure(*methods, loss="squared", groups=None, n_samples=4):
    return Measure(methods, as_distance("number"), as_loss(loss), groups or {}, 1, n_samples)


def changed(of, reference, then, current, now, seed):
    """The change by each method of `of`, from the reference on its data to the current model on the new data."""
    before = {method: MeasuredImportance.of(found) for method, (found,) in of.take([reference], then, 2 * seed).items()}
    taken = of.take([reference, current], now, 2 * seed + 1)
    return change_between(before, taken, of.loss, (0.0, 0.0))  # these models do not learn


# The sum of the parts


@settings(max_examples=60)
@given(then=TABLE, now=TABLE, weights=st.tuples(WEIGHTS, WEIGHTS), grouped=st.booleans(), seed=st.integers(0, 999))
def test_the_change_is_the_sum_of_its_parts(then, now, weights, grouped, seed):
    of = measure("pfi", "sage", groups={"ab": ["a", "b"]} if grouped else None)
    for change in changed(of, Linear(weights[0]), then, Linear(weights[1]), now, seed).values():
        assert list(change.delta) == list(change.model_part) == list(change.data_part) == change.features
        for feature, delta in change.delta.items():
            expected = change.after.get(feature, 0.0) - change.before.get(feature, 0.0)
            assert delta == expected
            assert abs(change.model_part[feature] + change.data_part[feature] - delta) < 1e-9
        for errors in (change.delta_std_error, change.model_part_std_error, change.data_part_std_error):
            assert all(error >= 0.0 for error in errors.values())


def test_the_three_losses_are_those_of_the_models_on_the_data():
    then, now = [({"a": 1.0}, 0.0), ({"a": 2.0}, 0.0)], [({"a": 3.0}, 0.0), ({"a": 1.0}, 0.0)]
    for change in changed(measure("pfi", "sage"), Linear({"a": 1.0}), then, Linear({"a": 2.0}), now, 1).values():
        assert (change.before_loss, change.crossed_loss, change.after_loss) == (2.5, 5.0, 20.0)


def test_on_one_data_set_all_of_the_change_is_the_models():
    data = linear_data(150, [1.0, 0.5, 0.0], [1.0, 1.0, 1.0], np.random.default_rng(1))
    taken = measure("pfi", "sage").take([Linear({"a": 1.0}), Linear({"b": 1.0})], data, 3)
    for change in change_on_one_data_set(taken, as_loss("squared")).values():
        assert change.model_part == change.delta
        assert set(change.data_part.values()) == set(change.data_part_std_error.values()) == {0.0}
        assert change.delta_std_error == change.model_part_std_error
        assert change.cause() == "model"


# Closed forms: x normal and independent, y = b x + noise, h = a x, squared loss.


def linear_data(n, slopes, spread, rng):
    x = rng.normal(size=(n, len(slopes))) * spread
    y = x @ np.array(slopes) + 0.5 * rng.normal(size=n)
    return [(dict(zip("abc", row, strict=True)), target) for row, target in zip(x.tolist(), y.tolist(), strict=True)]


def linear_truth(method, weights, slopes, spread):
    """PFI: E[(r + a (x - x'))^2] - E[r^2] = 2 a b s^2; SAGE: b^2 s^2 - (b - a)^2 s^2."""
    return [
        (2 * a * b - (a * a if method == "sage" else 0.0)) * s * s
        for a, b, s in zip(weights, slopes, spread, strict=True)
    ]


OLD = ([1.0, 0.5, 0.0], [1.0, 0.5, 0.0], [1.0, 1.0, 1.0])  # weights of the model, slopes and spread of the data
NEW = ([0.2, 1.0, 0.3], [0.2, 1.0, 0.3], [1.0, 1.5, 1.0])


@pytest.fixture(scope="module")
def linear_changes():
    """80 changes of both model and data, and what is true of them; by method."""
    of, runs = measure("pfi", "sage"), []
    for seed in range(80):
        rng = np.random.default_rng([seed, 5])
        then, now = linear_data(100, OLD[1], OLD[2], rng), linear_data(100, NEW[1], NEW[2], rng)
        models = [Linear(dict(zip("abc", weights, strict=True))) for weights in (OLD[0], NEW[0])]
        runs.append(changed(of, models[0], then, models[1], now, seed))
    return runs


@pytest.mark.parametrize("method", ["pfi", "sage"])
def test_the_errors_cover_the_truth(linear_changes, method):
    cases = [(OLD[0], OLD[1], OLD[2]), (OLD[0], NEW[1], NEW[2]), (NEW[0], NEW[1], NEW[2])]
    before, crossed, after = (np.array(linear_truth(method, *case)) for case in cases)
    truth = {"delta": after - before, "model_part": after - crossed, "data_part": crossed - before}
    covered = []
    for part, values in truth.items():
        changes = [run[method] for run in linear_changes]
        found = np.array([[getattr(change, part)[f] for f in "abc"] for change in changes])
        errors = np.array([[getattr(change, f"{part}_std_error")[f] for f in "abc"] for change in changes])
        inside = np.abs(found - values) <= 1.96 * errors + 1e-12
        covered.append(inside.mean())
        # 80 runs of .95 have the standard deviation .024; observations squared have heavy tails in 100 of them.
        assert inside.mean(axis=0).min() > 0.84
        spread = found.std(axis=0, ddof=1)
        real = spread > 1e-9
        assert np.all(np.abs(found.mean(axis=0) - values)[real] < 4 * spread[real] / math.sqrt(80) + 0.02)
        # Too large an error covers everything: it is the spread between data sets, of 80 known to 8 %.
        ratio = errors.mean(axis=0)[real] / spread[real]
        assert 0.75 < ratio.min() <= ratio.max() < 1.5
    assert 0.91 < np.mean(covered) < 0.99


@pytest.mark.parametrize("method", ["pfi", "sage"])
def test_the_paired_error_of_alike_models_is_smaller_than_the_unpaired_one(method):
    errors = []
    for seed in range(10):
        rng = np.random.default_rng([seed, 6])
        then, now = (linear_data(100, OLD[1], OLD[2], rng) for _ in range(2))
        old, new = Linear({"a": 1.0, "b": 0.5}), Linear({"a": 0.9, "b": 0.5})
        change = changed(measure(method), old, then, new, now, seed)[method]
        unpaired = math.hypot(change.crossed_std_error["a"], change.after_std_error["a"])
        errors.append([change.model_part_std_error["a"], unpaired])
    paired, unpaired = np.mean(errors, axis=0)
    assert paired < unpaired / 3


def test_the_error_of_sage_covers_where_the_model_is_wrong_on_average():
    # The concept A.1 on labels of A.2: 1/9 is predicted where 2/3 is true, so the mean prediction counts.
    def brier(y, p):
        return 2.0 * (y - p) ** 2

    exact = exact_sage(medium_or_large, small_and_red, brier)["size"]
    model = lambda x: {1: float(small_and_red(x)), 0: 1.0 - small_and_red(x)}  # noqa: E731
    of, found = measure("sage", loss="brier"), []
    for seed in range(100):
        (one,) = of.take([model], stagger_stream(medium_or_large, 60, seed), seed)["sage"]
        found.append([one.importance["size"] - exact, one.std_error["size"]])
    deviations, errors = np.array(found).T
    # The spread of 100 runs is known to 7 %.
    assert 0.84 < errors.mean() / deviations.std(ddof=1) < 1.2


# What is named


def test_nothing_is_named_where_nothing_has_changed_and_what_has_is():
    weights = dict(zip("abc", OLD[0], strict=True))
    of, named, causes = measure("pfi"), 0, Counter()
    for seed in range(250):
        rng = np.random.default_rng([seed, 7])
        then, now = (linear_data(60, OLD[1], OLD[2], rng) for _ in range(2))
        change = changed(of, Linear(weights), then, Linear(weights), now, seed)["pfi"]
        named += bool(change.significant())
        causes[change.cause()] += 1
        assert set(change.model_part_p_values.values()) == {1.0}
    # .05 of 250 is 12.5, with a standard deviation of 3.4; that nothing is ever named would be no better.
    assert 2 <= named <= 12.5 + 3 * 3.4
    assert causes["data"] == 250 - causes[None] <= 12.5 + 3 * 3.4


def test_a_real_change_is_named_in_the_feature_that_has_changed(linear_changes):
    # Of "a" 2 before and .08 after, of "b" .5 and 4.5; c, which the old model ignores, from 0 to .18.
    names = Counter(name for run in linear_changes for name in run["pfi"].significant())
    assert names["a"] > 0.95 * len(linear_changes)
    assert names["b"] > 0.95 * len(linear_changes)


# Whose doing it is


def skewed(concept, n, seed):
    """Points of which small ones are eight times as likely as others."""
    rng = np.random.default_rng([seed, 9])
    weights = np.array([8.0 if point["size"] == 0 else 1.0 for point in POINTS])
    picked = rng.choice(len(POINTS), size=n, p=weights / weights.sum()).tolist()
    return [(dict(POINTS[i]), concept(POINTS[i])) for i in picked]


CAUSES = {
    "nothing": (None, small_and_red, small_and_red, small_and_red, stagger_stream, small_and_red),
    "model": ("model", medium_or_large, small_and_red, small_and_red, stagger_stream, small_and_red),
    "inputs": ("data", small_and_red, small_and_red, small_and_red, skewed, small_and_red),
    "labels": ("data", small_and_red, small_and_red, small_and_red, stagger_stream, medium_or_large),
    "both": ("both", small_and_red, small_and_red, medium_or_large, stagger_stream, medium_or_large),
}


@pytest.mark.parametrize("case", CAUSES)
def test_the_cause_is_told(case):
    expected, reference, concept, current, stream, concept_now = CAUSES[case]
    told = {"pfi": Counter(), "sage": Counter()}
    for seed in range(12):
        then, now = stagger_stream(concept, 150, 2 * seed), stream(concept_now, 150, 2 * seed + 1)
        for method, change in changed(measure("pfi", "sage"), reference, then, current, now, seed).items():
            told[method][change.cause()] += 1
    # A part that has not changed is named in at most 5 % of the runs: of 12, four or more with a probability of .002.
    assert min(of[expected] for of in told.values()) >= 9


@pytest.mark.parametrize("case", ["nothing", "model", "labels", "both"])
def test_the_cause_is_told_on_a_stream(case):
    changes_model, changes_labels = case in ("model", "both"), case in ("labels", "both")
    told = Counter()
    for seed in range(6):
        model = SwitchingConcept(500 if changes_model else 10**6)
        explainer = ChangeExplainer(model, window=150, threshold=0.3, distance="label", loss="zero_one",
                                    explain_data=True, seed=seed)  # fmt: skip
        labels = medium_or_large if changes_labels else small_and_red
        stream = [*stagger_stream(small_and_red, 500, seed), *stagger_stream(labels, 500, seed + 100)]
        found = list(found_in(explainer, model, stream).values())
        assert explainer.n_data_changes == sum(explanation.kind == "data" for explanation in found)
        if case == "nothing":
            assert found == []
            continue
        assert found[0].kind == ("data" if case == "labels" else "model")
        told[found[0].cause] += 1
    if case != "nothing":
        assert told[{"model": "model", "labels": "data", "both": "both"}[case]] >= 5


# Where there is nothing but rounding


def test_rounding_is_no_change():
    then, now = (stagger_stream(small_and_red, 50, seed) for seed in (1, 2))
    of = measure("sage", loss="cross_entropy", n_samples=3)
    change = changed(of, lambda x: {0: 0.3, 1: 0.7}, then, lambda x: {0: 0.9, 1: 0.1}, now, 1)["sage"]
    assert max(map(abs, change.delta.values())) < 1e-12
    assert (change.significant(), change.cause()) == ([], None)


# What a model has memorised


def test_a_model_that_remembers_its_data_has_no_cause_where_nothing_has_changed():
    # kNN is right on what it has stored and guesses elsewhere: on new data the old model looks like another one, and
    # the new model on the same data, which it has stored, does too. Nothing has changed: y is noise beside a weak rule.
    rng = np.random.default_rng(4)

    def data(n):
        rows = rng.random((n, 2))
        return [({"a": a, "b": b}, int((a > 0.5) ^ (rng.random() < 0.3))) for a, b in rows.tolist()]

    causes = Counter()
    for seed in range(6):
        model = neighbors.KNNClassifier(1, engine=neighbors.LazySearch(window_size=400))
        then, following, now = data(200), data(200), data(200)
        for x, y in then:
            model.learn_one(x, y)
        reference = freeze(model)
        for x, y in (*following, *now):
            model.learn_one(x, y)
        of = measure("pfi", loss="zero_one")
        before = {"pfi": MeasuredImportance.of(of.take([reference], then, seed)["pfi"][0])}
        taken = of.take([reference, model], now, seed)
        ignorant = change_between(before, taken, of.loss, (0.0, 0.0))["pfi"]
        assert ignorant.cause() == "both"  # as if nothing had been memorised
        taken_then = Reference(reference, then, before, 200, None)
        assert change_between(before, taken, of.loss, taken_then.memorised(of))["pfi"].cause() is None  # not known
        for x, y in following:
            taken_then.add_next(x, y)
        told = change_between(before, taken, of.loss, taken_then.memorised(of))["pfi"]
        assert told.memorised == pytest.approx(told.crossed_loss - told.before_loss, abs=0.15)
        causes[told.cause()] += 1
    assert causes[None] >= 5


def test_a_part_must_exceed_what_was_memorised():
    then, now = (stagger_stream(small_and_red, 150, seed) for seed in (1, 2))
    found = changed(measure("pfi"), small_and_red, then, medium_or_large, now, 1)["pfi"]
    assert found.cause() == "model"
    largest = max(map(abs, found.model_part.values()))
    for memorised, cause in ((0.3 * largest, "model"), (-1.0, "model"), (largest, None)):
        assert dataclasses.replace(found, memorised=memorised).cause() == cause
    assert dataclasses.replace(found, memorised_std_error=largest).cause() is None

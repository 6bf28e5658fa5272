"""Batch SAGE against the exact values, and the baselines on streams against the batch methods on the very rows."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from river import naive_bayes

from attributary_explainers import InvalidParameterError, ModelError, NoPredictionError, batch_pfi
from attributary_explainers.batch.exact import exact_sage, expected_pfi
from attributary_explainers.batch.sampled import batch_sage
from attributary_explainers.batch.window import IntervalPFI, SlidingWindowSAGE, interval_pfi
from tests.explainers import oracles
from tests.explainers.oracles import FEATURES, POINTS, mean_and_error, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import Counting, Linear, Recording

MODEL = Linear({"a": 1.0, "b": -2.0}, intercept=0.5)
DATA = [({"a": float(i % 4), "b": float(i * i % 5)}, float(i % 3)) for i in range(12)]
VALUES = st.floats(-10.0, 10.0)
METHODS = [batch_pfi, expected_pfi, exact_sage, batch_sage]


@pytest.mark.long
@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.parametrize(("n_samples", "n_runs"), [(1, 600), (4, 300), (100, 30)])
def test_published_batch_sage_of_stagger_has_the_exact_mean(concept, n_samples, n_runs):
    # A squared loss of a mean over m draws exceeds that of the expectation by variance / m, so the limit is linear
    # in 1 / m between the values at m = 1 and the exact ones. Few draws are skewed, so they need many runs.
    data = [(x, concept(x)) for x in POINTS]
    how = {"loss": "squared", "n_samples": n_samples, "sampling": "independent"}
    runs = [batch_sage(concept, data, **how, seed=seed) for seed in range(n_runs)]
    exact = exact_sage(concept, data, loss="squared").importance
    one = oracles.one_draw_limit(concept, concept, oracles.squared)
    for feature in FEATURES:
        mean, error = mean_and_error([run.importance[feature] for run in runs])
        assert abs(mean - (exact[feature] + (one[feature] - exact[feature]) / n_samples)) <= 4 * error + 1e-12
        if n_samples == 100:
            assert abs(mean - exact[feature]) <= 4 * error + 0.25 / 100  # the largest variance of a 0/1 prediction
            assert error < 0.01


@pytest.mark.parametrize("concept", [small_and_red, medium_or_large])
@pytest.mark.parametrize(("n_samples", "n_runs"), [(1, 400), (2, 200), (5, 100)])
@pytest.mark.share(2, "concept", "n_samples")
def test_batch_sage_of_stagger_has_the_exact_mean_from_two_draws_on(concept, n_samples, n_runs):
    data = [(x, concept(x)) for x in POINTS]
    runs = [batch_sage(concept, data, loss="squared", n_samples=n_samples, seed=seed) for seed in range(n_runs)]
    if n_samples == 1:
        expected = oracles.one_draw_limit(concept, concept, oracles.squared)
    else:
        expected = exact_sage(concept, data, loss="squared").importance
    for feature in FEATURES:
        mean, error = mean_and_error([run.importance[feature] for run in runs])
        assert abs(mean - expected[feature]) <= 4 * error + 1e-12
        assert n_samples == 1 or error < 0.01


def calibrated(loss, n=60):
    """Observations whose labels are drawn from what the model says, and the model."""
    rng, weights = np.random.default_rng(2), {"a": 2.0, "b": 1.0, "c": 0.5, "d": 0.0}
    xs = [dict(zip(weights, row, strict=True)) for row in rng.normal(size=(n, 4)).tolist()]
    if loss == "squared":
        model = Linear(weights)
        return model, [(x, model(x) + e) for x, e in zip(xs, rng.normal(size=n).tolist(), strict=True)]

    def classify(x):
        p = 1.0 / (1.0 + math.exp(-math.fsum(w * x[name] for name, w in weights.items())))
        return {True: p, False: 1.0 - p}

    return classify, [(x, bool(u < classify(x)[True])) for x, u in zip(xs, rng.random(n).tolist(), strict=True)]


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_stratified_draws_are_nearer_to_the_exact_values_at_equal_cost(loss):
    model, data = calibrated(loss)
    exact = np.array(list(exact_sage(model, data, loss=loss).importance.values()))
    errors = {}
    for sampling in ("stratified", "independent"):
        runs = [batch_sage(model, data, loss=loss, sampling=sampling, seed=seed) for seed in range(12)]
        found = np.array([list(run.importance.values()) for run in runs])
        errors[sampling] = math.sqrt(np.mean((found - exact) ** 2))
    assert errors["stratified"] < 0.8 * errors["independent"], errors


@settings(max_examples=40, deadline=None)
@given(
    table=st.lists(st.tuples(st.dictionaries(st.sampled_from("abcd"), VALUES), VALUES), min_size=2, max_size=6),
    weights=st.fixed_dictionaries(dict.fromkeys("abc", VALUES)),
    n_samples=st.integers(1, 3),
    n_permutations=st.integers(1, 3),
    grouped=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_batch_sage_sums_to_the_improvement(table, weights, n_samples, n_permutations, grouped, seed):
    assume(not grouped or any(x.keys() & {"a", "b"} for x, _ in table))  # a group that no row has is refused
    model, groups = Linear(weights), {"ab": ["a", "b"]} if grouped else None
    options = {"loss": "squared", "groups": groups}
    batch = batch_sage(model, table, **options, n_samples=n_samples, n_permutations=n_permutations, seed=seed)
    mean = math.fsum(model(x) for x, _ in table) / len(table)
    improvement = math.fsum((y - mean) ** 2 - (y - model(x)) ** 2 for x, y in table) / len(table)
    # Predictions reach 300, losses 310^2; importances sum to an identity, whether exact or not.
    for result in (batch, exact_sage(model, table, **options)):
        assert abs(math.fsum(result.importance.values()) - improvement) <= 1e-12 * 310**2 or not result.importance
        assert result.importance.keys() == ({"ab"} if grouped else set()) | {
            f for x, _ in table for f in x if not grouped or f in "cd"
        }


def test_many_permutations_and_draws_cost_what_is_said_and_lower_the_spread():
    spread = {}
    for n in (1, 8):
        runs = [batch_sage(MODEL, DATA, loss="squared", n_permutations=n, seed=seed) for seed in range(60)]
        spread[n] = np.std([run.importance["a"] for run in runs], ddof=1)
        batch_sage(model := Recording(), DATA, loss="squared", n_samples=3, n_permutations=n)
        assert len(model.rows) == 12 * (1 + 3 * n)
    # 1 / sqrt(8) = 0.35; a quotient of two spreads of 60 runs is known to 13 %.
    assert 0.2 < spread[8] / spread[1] < 0.55


def test_the_standard_error_is_the_spread_between_data_sets():
    samples = [stagger_stream(medium_or_large, 60, 500 + seed) for seed in range(100)]
    results = [batch_sage(medium_or_large, data, loss="squared", seed=seed) for seed, data in enumerate(samples)]
    spread = np.std([result.importance["color"] for result in results], ddof=1)
    assert 0.79 < np.mean([result.std_error["color"] for result in results]) / spread < 1.3


@pytest.mark.parametrize("method", [batch_pfi, batch_sage])
def test_equal_seeds_give_equal_values_and_the_data_is_left_alone(method):
    before = [(dict(x), y) for x, y in DATA]
    one, two, other = (method(MODEL, DATA, loss="squared", seed=seed) for seed in (3, 3, 4))
    assert one == two
    assert one != other
    assert before == DATA


@pytest.mark.parametrize("method", METHODS)
def test_what_no_data_set_method_can_explain_is_refused(method):
    for data in ([], DATA[:1]):
        with pytest.raises(InvalidParameterError, match=r"^data must be at least two observations, got [01]$"):
            method(MODEL, data, loss="squared")
    with pytest.raises(NoPredictionError, match=r"^GaussianNB has no prediction .*let it learn first$"):
        method(naive_bayes.GaussianNB(), DATA)
    with pytest.raises(InvalidParameterError, match=r"observations whose loss is finite, got .*nan"):
        method(MODEL, [*DATA, ({"a": 1.0, "b": 1.0}, math.nan)], loss="squared")
    with pytest.raises(InvalidParameterError, match=r"^groups must be"):
        method(MODEL, DATA, loss="squared", groups={"g": ["a"], "h": ["a"]})
    with pytest.raises(InvalidParameterError, match=r"^groups must be named differently from every feature"):
        method(MODEL, DATA, loss="squared", groups={"b": ["a"]})
    with pytest.raises(ModelError, match="name a loss"):
        method(MODEL, DATA)


@pytest.mark.parametrize("method", [exact_sage, batch_sage])
def test_a_model_that_predicts_now_a_number_now_a_dict_is_refused(method):
    with pytest.raises(ModelError, match="predicts both numbers and dicts"):
        method(lambda x: 1.0 if x["a"] else {1: 1.0}, DATA, loss=lambda y, prediction: 0.0)


def test_another_way_to_sample_is_refused():
    with pytest.raises(InvalidParameterError, match=r"^sampling must be .*stratified.*got 'random'"):
        batch_sage(MODEL, DATA, loss="squared", sampling="random")


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
@pytest.mark.parametrize(
    ("method", "parameter"), [(batch_pfi, "n_permutations"), (batch_sage, "n_permutations"), (batch_sage, "n_samples")]
)
def test_a_number_of_samples_or_permutations_below_one_is_refused(method, parameter, value):
    with pytest.raises(InvalidParameterError, match=f"^{parameter} must be an integer >= 1, got {value}"):
        method(MODEL, DATA, loss="squared", **{parameter: value})


def seeds(seed):
    """The seeds that a stream method derives, one after another."""
    rng = np.random.default_rng(seed)
    while True:
        yield int(rng.integers(2**63))


def test_interval_pfi_is_batch_pfi_on_the_very_rows():
    options = {"loss": "squared", "n_permutations": 2, "groups": {"both": ["a", "b"]}}
    expected = [
        (n, batch_pfi(MODEL, DATA[n - 5 : n], **options, seed=s)) for n, s in zip((5, 10), seeds(7), strict=False)
    ]
    assert list(interval_pfi(MODEL, iter(DATA), interval=5, **options, seed=7)) == expected
    explainer = IntervalPFI(MODEL, interval=5, **options, seed=7)
    found = []
    for x, y in DATA:
        found.append(explainer.update(shared := dict(x), y))
        shared.clear()  # what it keeps is a copy
    assert [(n, result) for n, result in enumerate(found, start=1) if result is not None] == expected


def test_an_interval_is_explained_with_the_model_of_its_last_observation():
    model, seen = Counting(), []

    def stream():
        for x, y in DATA:
            yield x, y
            model.learn_one(x, y)

    def loss(_y, prediction):
        seen.append(prediction)
        return 0.0

    assert [n for n, _ in interval_pfi(model, stream(), interval=4, loss=loss)] == [4, 8, 12]
    assert sorted(set(seen)) == [3.0, 7.0, 11.0]


@pytest.mark.parametrize("stride", [1, 3])
def test_sliding_window_sage_is_batch_sage_on_the_very_rows(stride):
    options = {"loss": "squared", "n_samples": 2}
    sage, of_stream = SlidingWindowSAGE(MODEL, window=5, stride=stride, **options, seed=7), seeds(7)
    options["sampling"] = "independent"
    importance = std_error = {}
    for n, (x, y) in enumerate(DATA, start=1):
        found = sage.explain_one(shared := dict(x), y, y_pred=99.0)
        shared.clear()
        if n >= 2 and n % stride == 0:
            batch = batch_sage(MODEL, DATA[max(0, n - 5) : n], **options, seed=next(of_stream))
            importance, std_error = batch.importance, batch.std_error
        assert (found, sage.importance, sage.std_error) == (importance, importance, std_error)
        found.clear()  # what it gives is a copy
    assert (len(sage._data), sage.n_observations, sage.n_skipped) == (5, 12, 0)


def test_what_cannot_be_explained_is_skipped_and_counted():
    stream = [*DATA[:4], ({"a": math.nan, "b": 0.0}, 0.0), *DATA[5:]]
    pfi = IntervalPFI(MODEL, interval=4, loss="squared", seed=1)
    assert [pfi.update(x, y) is not None for x, y in stream][3::4] == [True, False, True]
    sage = SlidingWindowSAGE(MODEL, window=3, stride=2, loss="squared", seed=1)
    found = [sage.explain_one(x, y) for x, y in stream]
    assert found[3] == found[5] != found[7]  # the sixth observation's window holds the fifth
    assert (pfi.n_skipped, sage.n_skipped) == (4, 2)  # an interval, and what had come since the last computation
    sage = SlidingWindowSAGE(MODEL, window=3, stride=2, loss="squared", groups={"b": ["a"]})
    with pytest.raises(InvalidParameterError, match=r"^groups must"):  # no fault of the data: not skipped
        [sage.explain_one(x, y) for x, y in DATA]


@pytest.mark.parametrize(
    ("make", "wrong", "least"),
    [
        (lambda **p: interval_pfi(MODEL, iter(DATA), **{"interval": 5, "loss": "squared", **p}), "interval", 2),
        (lambda **p: interval_pfi(MODEL, iter(DATA), interval=5, loss="squared", **p), "n_permutations", 1),
        (lambda **p: SlidingWindowSAGE(MODEL, **{"window": 5, "stride": 1, "loss": "squared", **p}), "window", 2),
        (lambda **p: SlidingWindowSAGE(MODEL, **{"window": 5, "stride": 1, "loss": "squared", **p}), "stride", 1),
        (lambda **p: SlidingWindowSAGE(MODEL, window=5, stride=1, loss="squared", **p), "n_samples", 1),
    ],
)
def test_wrong_parameters_are_refused_at_once(make, wrong, least):
    with pytest.raises(InvalidParameterError, match=f"^{wrong} must be an integer >= {least}, got {least - 1}$"):
        make(**{wrong: least - 1})
    with pytest.raises(InvalidParameterError, match=r"^groups must be"):
        make(groups={"g": []})

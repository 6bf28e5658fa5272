"""The merge of shards against one explainer of all observations, against enumerated weights, and over many seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from attributary_explainers import (
    IncrementalPFI,
    InvalidParameterError,
    MergedImportance,
    ShardEstimate,
    SmoothedImportance,
)
from attributary_explainers.removal.choice import ConstantImputer
from attributary_explainers.smoothing.shards import FADED

PLAIN = 1e-16
"""So small that each observation counts the same: a plain mean."""


def estimate_of(smoothed: SmoothedImportance) -> ShardEstimate:
    return ShardEstimate(smoothed.weights.n, smoothed.mean(), smoothed.std_error(), smoothed.degrees_of_freedom)


def said(n: int, value: float = 0.0, error: float = 1.0, degrees: float = 20.0) -> ShardEstimate:
    return ShardEstimate(n, {"a": value}, {"a": error}, degrees)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 30)), min_size=1, max_size=25), st.integers(0, 2**32 - 1))
def test_with_plain_means_the_merge_is_that_of_one_explainer_on_all_observations(blocks, seed):
    rng = np.random.default_rng(seed)
    whole, shards, merged = SmoothedImportance(PLAIN), {}, MergedImportance(PLAIN)
    for shard, n in blocks:
        own = shards.setdefault(shard, SmoothedImportance(PLAIN))
        for _ in range(n):
            names = ("a", "b", "late") if shard == 2 else ("a", "b")
            increments = dict(zip(names, rng.normal(size=3) + shard, strict=False))
            whole.update(increments)
            own.update(increments)
        merged.update(shard, estimate_of(own))
    assert merged.n_represented == whole.weights.n
    assert merged.importance == pytest.approx(whole.mean(), abs=1e-12)
    assert merged.weights == pytest.approx(
        {number: one.weights.n / whole.weights.n for number, one in shards.items()}, abs=1e-12
    )


def predict(x):
    """y = 2a + b: a third feature does not matter."""
    return 2.0 * x["a"] + x["b"]


def stream(n: int, seed: int = 7) -> Iterator[tuple[dict[str, float], float]]:
    rng = np.random.default_rng(seed)
    for _ in range(n):
        a, b, c = rng.normal(size=3)
        yield {"a": a, "b": b, "c": c}, 2.0 * a + b + rng.normal()


def test_with_nothing_to_draw_the_merge_of_explainers_is_one_explainer_on_all_observations():
    def made():
        removal = ConstantImputer({"a": 0.0, "b": 0.0, "c": 0.0})
        return IncrementalPFI(predict, loss="squared", alpha=PLAIN, removal=removal, n_samples=1, seed=1)

    whole, shards, merged = made(), [made() for _ in range(3)], MergedImportance(PLAIN)
    for i, (x, y) in enumerate(stream(600)):
        shard = 0 if i % 5 < 3 else 1 + i % 2
        whole.explain_one(x, y)
        shards[shard].explain_one(x, y)
        if i % 40 == shard:
            merged.update(shard, explained(shards[shard]))
    for number, shard in enumerate(shards):
        merged.update(number, explained(shard))
    assert merged.importance == pytest.approx(whole.importance, abs=1e-12)
    assert whole.importance["a"] > whole.importance["b"] > 0.5
    assert merged.importance["c"] == whole.importance["c"] == 0.0, "a feature that does not matter stays at 0"


def explained(explainer: IncrementalPFI) -> ShardEstimate:
    return ShardEstimate(
        explainer.n_observations, explainer.importance, explainer.std_error, explainer.degrees_of_freedom
    )


@pytest.mark.parametrize("alpha", [0.02, 0.01, 0.001])
def test_weights_are_those_of_observations_spread_over_what_the_model_reported(alpha):
    rng = np.random.default_rng(3)
    merged, places, n, at, apart, counts = MergedImportance(alpha), {}, 0, {}, {}, {}
    n_shards = 3
    decay = (1.0 - alpha) ** (1.0 / n_shards)
    for i in range(60):
        shard = i if i < n_shards else int(rng.integers(n_shards))
        new = int(rng.integers(1, 40))
        n += new if shard in at else 0
        counts[shard] = counts.get(shard, 0) + new
        merged.update(shard, said(counts[shard]))
        apart[shard] = n - at[shard] if shard in at else sum(counts.values())
        spacing = apart[shard] / new
        places.setdefault(shard, []).extend(n - spacing * k for k in range(new))
        at[shard] = n
    # The first blocks were weighted when fewer shards were known, and have faded.
    c = {
        shard: sum(decay ** (at[shard] - place) for place in placed) * decay ** max(0, n - at[shard] - 2 * apart[shard])
        for shard, placed in places.items()
    }
    expected = {shard: one / sum(c.values()) for shard, one in c.items()}
    first = (1.0 - alpha) ** (n / n_shards)
    assert merged.weights == pytest.approx(expected, abs=1e-9 + 2.0 * first)


def test_shards_of_equal_traffic_have_equal_weights_after_each_estimate():
    merged, n = MergedImportance(0.001), [0, 0, 0, 0]
    for i in range(400):
        n[i % 4] += 500
        merged.update(i % 4, said(n[i % 4]))
        if i >= 100:  # at the beginning the first to report has more behind it
            assert merged.weights == pytest.approx(dict.fromkeys(range(4), 0.25), abs=1e-5)


def test_the_weight_of_a_shard_tends_to_its_share_of_the_traffic():
    merged, n, weights = MergedImportance(0.001), [0, 0], []
    for i in range(3000):
        shard = int(i % 10 == 9)
        n[shard] += 100
        if shard == 0 or n[1] % 500 == 0:
            merged.update(shard, said(n[shard]))
        weights.append(merged.weights.get(1, 0.0))
    assert np.mean(weights[1000:]) == pytest.approx(0.1, abs=0.01)


def test_the_merge_follows_a_change_as_one_explainer_with_the_alpha_that_its_docstring_names():
    alpha, n_shards, every = 0.01, 4, 25
    whole = SmoothedImportance(1.0 - (1.0 - alpha) ** (1.0 / n_shards))
    shards = [SmoothedImportance(alpha) for _ in range(n_shards)]
    merged, apart = MergedImportance(alpha), []
    for i in range(4000):
        increments = {"a": math.sin(i / 300.0) if i < 2000 else 3.0}
        whole.update(increments)
        own = shards[i % n_shards]
        own.update(increments)
        if own.weights.n % every == 0:
            merged.update(i % n_shards, estimate_of(own))
        if i > 1000 and i % (n_shards * every) == n_shards * every - 1:
            apart.append(abs(merged.importance["a"] - whole.mean()["a"]))
    assert max(apart) < 0.03, "of swings of 1 and a step of 3"


def test_a_silent_shard_fades_from_the_moment_it_is_overdue_and_is_left_out():
    alpha, merged = 0.01, MergedImportance(0.01)
    for n in range(100, 1001, 100):
        merged.update(0, said(n, 1.0))
        merged.update(1, said(n, 5.0))
    assert merged.weights == pytest.approx({0: 0.5, 1: 0.5}, abs=1e-4)
    merged.update(0, said(1100, 1.0))
    assert merged.weights == pytest.approx({0: 0.5, 1: 0.5}, abs=1e-4), "not yet overdue"
    n, seen = 1100, []
    while len(merged.weights) == 2:
        n += 100
        merged.update(0, said(n, 1.0))
        if len(merged.weights) == 2:
            # Of its last block on, the other one has all the traffic, and twice the weight in the end.
            decay = (1.0 - alpha) ** 0.5
            of_all = sum(decay**k for k in range(n - 1100)) + 0.5 * sum(decay**k for k in range(n - 1100, 10_000))
            of_silent = 1.0 / alpha * decay ** max(n - 1000 - 400, 0)
            assert merged.weights[1] == pytest.approx(of_silent / (of_silent + of_all), abs=0.03)
            seen.append(merged.importance["a"])
    assert seen == sorted(seen, reverse=True)
    assert len(seen) > 5
    assert (1.0 - alpha) ** ((n - 1000 - 400) / 2) < FADED
    assert merged.importance == {"a": 1.0}
    rising = []
    for back in range(1100, 3000, 100):
        merged.update(1, said(back, 5.0))
        n += 100
        merged.update(0, said(n, 1.0))
        rising.append(merged.weights[1])
    assert rising == sorted(rising), "its first block may have come at any time since it was heard"
    assert merged.weights[1] == pytest.approx(0.5, abs=1e-3), "it is back"


@pytest.mark.parametrize("n", [1_000, 1_000_000])
def test_a_shard_that_is_silent_after_its_first_estimate_is_left_out_as_soon_however_long_it_has_been_there(n):
    alpha, merged = 0.01, MergedImportance(0.01)
    merged.update(0, said(n, 1.0))
    merged.update(1, said(n, 5.0))
    weights, n_reported = [merged.weights[1]], 0
    while 1 in merged.weights:
        n_reported += 100
        merged.update(0, said(n + n_reported, 1.0))
        weights.append(merged.weights.get(1, 0.0))
    assert weights[0] == pytest.approx(0.5)
    assert weights == sorted(weights, reverse=True)
    # With equal traffic one estimate of it is expected within 200 observations of the model; it is overdue after 400.
    n_fading = math.log(FADED) / math.log1p(-alpha) * 2
    assert 400 + n_fading < n_reported < 500 + n_fading
    assert merged.importance == {"a": 1.0}


@pytest.mark.parametrize("n", [100, 50_000])
@pytest.mark.parametrize("alpha", [0.01, 0.1])
def test_the_shard_that_spoke_first_of_all_has_as_much_time_as_the_others(alpha, n):
    merged, n_reported, spoke = MergedImportance(alpha), 0, [n] * 4
    for shard in range(4):
        merged.update(shard, said(n))
    while 0 in merged.weights:
        shard = 1 + n_reported // 100 % 3
        spoke[shard] += 100
        n_reported += 100
        merged.update(shard, said(spoke[shard]))
    # One estimate of it is expected within 400 observations of the model; it is overdue after 800.
    n_fading = math.log(FADED) / math.log1p(-alpha) * 4
    assert 800 + n_fading < n_reported < 900 + n_fading


@pytest.mark.parametrize(("alpha", "rare"), [(0.01, 0.01), (0.004, 0.01), (0.02, 0.03)])
def test_a_shard_with_little_traffic_has_its_share_from_its_first_estimate_on(alpha, rare):
    rng, every = np.random.default_rng(1), 100
    shares = [(1.0 - rare) / 3] * 3 + [rare]
    merged, n, seen = MergedImportance(alpha), [0] * 4, []
    for shard in rng.choice(4, size=150_000, p=shares).tolist():
        n[shard] += 1
        if n[shard] % every == 0:
            merged.update(shard, said(n[shard], 5.0 if shard == 3 else 1.0))
            if n[3] >= every:
                seen.append(merged.weights.get(3, 0.0))
    assert len(seen) > 1000
    assert min(seen) > 0.2 * rare
    assert max(seen) < 3.0 * rare
    assert np.mean(seen) == pytest.approx(rare, rel=0.4)


def test_with_plain_means_a_silent_shard_keeps_its_weight():
    merged = MergedImportance(PLAIN)
    merged.update(1, said(1000, 5.0))
    for n in range(100, 100_001, 100):
        merged.update(0, said(n, 1.0))
    assert merged.weights == pytest.approx({0: 100 / 101, 1: 1 / 101}, abs=1e-12)


def test_a_shard_that_begins_afresh_counts_from_there_on():
    merged = MergedImportance(PLAIN)
    merged.update(0, said(1000))
    merged.update(1, said(1000))
    merged.update(0, said(250))
    assert merged.weights == pytest.approx({0: 0.2, 1: 0.8})
    assert merged.n_represented == 1250


@pytest.mark.long
def test_the_standard_error_is_the_spread_over_many_streams_and_intervals_hold():
    alpha, sizes, runs, inside, means, errors = 0.02, (6, 3, 1), 600, 0, [], []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        shards, merged, n = [SmoothedImportance(alpha) for _ in sizes], MergedImportance(alpha), [0, 0, 0]
        for _ in range(60):
            for number, size in enumerate(sizes):
                for value in rng.normal(1.0, 1.0 + number, size=10 * size):
                    shards[number].update({"a": value})
                n[number] += 10 * size
                merged.update(number, estimate_of(shards[number]))
        means.append(merged.importance["a"])
        errors.append(merged.std_error["a"])
        inside += abs(means[-1] - 1.0) <= merged.half_width["a"]
    # 600 runs: the spread is known to 3 %, the mean squared error to 2 %, a coverage of .95 to .009.
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(means), rel=0.1)
    assert 0.92 < inside / runs < 0.98


def test_dummy_and_efficiency_survive_the_merge():
    merged = MergedImportance(0.01)
    totals, n = [], [0, 0]
    rng = np.random.default_rng(0)
    for i in range(50):
        shard = i % 2
        n[shard] += int(rng.integers(1, 100))
        a, b = rng.normal(size=2)
        merged.update(shard, ShardEstimate(n[shard], {"a": a, "dummy": 0.0, "b": b}, {"a": 1, "dummy": 0, "b": 1}, 9.0))
        totals = [*totals[-1:], (shard, a + b)]
    assert merged.importance["dummy"] == merged.std_error["dummy"] == merged.half_width["dummy"] == 0.0
    weights = merged.weights
    assert sum(merged.importance.values()) == pytest.approx(sum(weights[one] * total for one, total in totals))


def test_an_unknown_error_of_a_shard_is_one_of_the_merge_and_a_feature_that_it_lacks_is_0_there():
    merged = MergedImportance(PLAIN)
    merged.update(0, ShardEstimate(3, {"a": 2.0, "b": 4.0}, {"a": 0.3, "b": 0.3}, 5.0))
    merged.update(1, ShardEstimate(1, {"a": 2.0}, {"a": math.nan}, math.nan))
    assert merged.importance == {"a": 2.0, "b": 3.0}
    assert math.isnan(merged.std_error["a"])
    assert math.isnan(merged.half_width["a"])
    assert merged.std_error["b"] == pytest.approx(0.75 * 0.3)
    assert merged.mean({0: 1.0, 1: None}) == 1.0
    assert merged.mean({0: 1.0, 1: 5.0}) == 2.0
    assert merged.mean({}) is None


@pytest.mark.parametrize("alpha", [0.01, 1.0, PLAIN, 5e-324])
def test_a_merge_goes_on_from_its_snapshot(alpha):
    merged = MergedImportance(alpha)
    assert merged.weights == merged.importance == merged.std_error == merged.half_width == {}
    for n in range(10, 200, 10):
        merged.update(n % 3, said(n, n, 0.5))
        again = MergedImportance.from_snapshot(merged.snapshot())
        assert (again.importance, again.half_width) == (merged.importance, merged.half_width)
        assert again.snapshot() == merged.snapshot()
        merged = again
    assert sum(merged.weights.values()) == pytest.approx(1.0)


def test_an_alpha_that_is_none_is_refused():
    with pytest.raises(InvalidParameterError):
        MergedImportance(0.0)


def test_the_interval_is_that_of_welch_and_satterthwaite():
    merged = MergedImportance(PLAIN)
    merged.update(0, ShardEstimate(300, {"a": 1.0}, {"a": 0.4}, 5.0))
    merged.update(1, ShardEstimate(100, {"a": 2.0}, {"a": 0.9}, 15.0))
    parts = [(0.75 * 0.4) ** 2, (0.25 * 0.9) ** 2]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 5.0 + parts[1] ** 2 / 15.0)
    assert merged.std_error["a"] == pytest.approx(math.sqrt(sum(parts)))
    assert merged.half_width["a"] == pytest.approx(t.ppf(0.975, freedom) * math.sqrt(sum(parts)))

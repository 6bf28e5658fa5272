"""The trees of the conditional sampler against a plain recount of the observations they were given."""

import math
from itertools import pairwise

import numpy as np
import pytest
from river import drift
from river.tree.split_criterion import InfoGainSplitCriterion, VarianceReductionSplitCriterion
from scipy import stats

from attributary_explainers.removal.conditional import EMPTY, ConditionalSampler
from attributary_explainers.removal.hoeffding import (
    MAX_BINS,
    OTHER,
    BinnedObserver,
    Counts,
    Moments,
    Nominal,
    NominalObserver,
    Numeric,
    RecentRows,
    RelativeADWIN,
)


def stepped(n, seed=1):
    """Every value of x is unique, so that a stored one tells which observation it was of; x depends on all others."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        u, v, kind = float(rng.random()), float(rng.normal()), "abc"[rng.integers(3)]
        x = 8.0 * (u > 0.4) + 4.0 * (kind == "b") + 2.0 * (kind == "c") + (v > 0.0) + float(rng.random()) / 4
        yield {"x": x, "u": u, "v": v, "kind": kind}


@pytest.fixture(scope="module")
def grown():
    """A sampler whose reservoirs never overflow and whose counts are never halved; all that it has seen; and how much
    of that each split has seen: what came after the split above it."""
    seen, sampler, since = list(stepped(3000)), ConditionalSampler(seed=1, leaf_size=4000), {}
    for t, x in enumerate(seen):
        sampler.update(x)
        for _, conditions in path_to_leaves(sampler._known["x"].tree._root) if t >= 9 else ():
            for (above, _), (branch, _) in pairwise(((None, 0), *conditions)):
                since.setdefault(branch, (seen[since[above][1] :], t + 1) if above else (seen[9:], t + 1))
    # A feature takes part from its tenth value on.
    return sampler, seen[9:], {branch: rows for branch, (rows, _) in since.items()}


def path_to_leaves(node, conditions=()):
    if node.counts is None:
        yield node, conditions
        return
    for i, child in enumerate(node.children):
        yield from path_to_leaves(child, (*conditions, (node, i)))


def fits(x, conditions, kinds):
    """Whether an observation meets all conditions on the way, by what River's branches mean."""
    for branch, i in conditions:
        value = x[branch.feature]
        if hasattr(branch, "threshold"):
            way = 0 if value <= branch.threshold else 1
        elif hasattr(branch, "value"):
            way = 0 if kinds.index(value) == branch.value else 1
        else:
            way = list(branch._mapping).index(kinds.index(value))
        if way != i:
            return False
    return True


def test_every_leaf_holds_exactly_the_observations_that_meet_its_conditions(grown):
    sampler, seen, since = grown
    kinds = list(sampler._known["kind"].encoding._numbers)
    kinds.sort(key=lambda kind: sampler._known["kind"].encoding.code(kind))
    found = list(path_to_leaves(sampler._known["x"].tree._root))
    assert len(found) >= 10
    for leaf, conditions in found:
        # Also those from before the splits: none is lost, none is doubled, none is in a wrong place.
        assert sorted(leaf.values) == sorted(x["x"] for x in seen if fits(x, conditions, kinds))
    for _, conditions in found:
        for k, (branch, i) in enumerate(conditions):
            assert branch.counts[i] == sum(fits(x, conditions[: k + 1], kinds) for x in since[branch])


def test_the_distribution_is_that_of_the_plain_recursion_over_observations(grown):
    sampler, seen, since = grown
    known = sampler._known

    def way(node, row):
        return node.branch_no({node.feature: known[node.feature].encoding.code(row[node.feature])})

    def naive(node, rows, above, x, present):
        """`rows` reach the node; so do those of `since[node]` that met the conditions `above`."""
        if node.counts is None:
            return {row["x"]: 1.0 / len(rows) for row in rows}
        counted = [row for row in since[node] if all(way(branch, row) == i for branch, i in above)]
        ways = [way(node, x)] if node.feature in present else range(len(node.children))
        mixed = {}
        for i in ways:
            share = sum(way(node, row) == i for row in counted) / len(counted) if len(ways) > 1 else 1.0
            reaching = [row for row in rows if way(node, row) == i]
            for value, p in naive(node.children[i], reaching, (*above, (node, i)), x, present).items():
                mixed[value] = mixed.get(value, 0.0) + p * share
        return mixed

    for x in list(stepped(3, seed=5)):
        for present in (set(), {"u"}, {"v", "kind"}, {"u", "kind"}, {"u", "v", "kind"}):
            expected = naive(known["x"].tree._root, seen, (), x, present)
            assert dict(sampler.distribution("x", x, present)) == pytest.approx(expected, abs=1e-12)


def test_a_full_leaf_replaces_every_slot_equally_often():
    # 30 observations after the first 10 + 9, of 2000 seeds: each slot holds the item of age r by p (1 - p)^r.
    ages, n_items, size = np.zeros(40), 49, 10
    for seed in range(1500):
        sampler = ConditionalSampler(seed=seed, leaf_size=size, features=["x"])
        for i in range(n_items):
            sampler.update({"x": float(i), "one": 1.0})
        drawn = sampler.draw("x", {}, set(), np.random.default_rng(seed).random())
        ages[n_items - 1 - int(drawn)] += 1
    p = 1.0 / size
    expected = np.array([p * (1 - p) ** min(r, 30) for r in range(40)])
    assert expected.sum() == pytest.approx(1.0)
    assert stats.chisquare(ages, expected * 1500).pvalue > 1e-4


def test_nothing_splits_by_chance():
    rng, sampler = np.random.default_rng(6), ConditionalSampler(seed=1, grace_period=50)
    for _ in range(3000):
        sampler.update(
            {
                "a": float(rng.normal()),
                "b": float(rng.exponential()),
                "c": "xyz"[rng.integers(3)],
                "d": rng.random() < 0.01,
            }
        )
    assert [known.tree.n_leaves for known in sampler._known.values()] == [1, 1, 1, 1]


def test_two_features_that_know_nothing_of_each_other_do_not_split_either():
    # River's trees split here at the first attempt, and at every later one: nothing competes.
    rng, sampler = np.random.default_rng(7), ConditionalSampler(seed=1, grace_period=50)
    for _ in range(2000):
        sampler.update({"a": float(rng.normal()), "b": "xy"[rng.integers(2)]})
    assert [known.tree.n_leaves for known in sampler._known.values()] == [1, 1]


def test_a_rare_category_is_split_off():
    # River leaves a leaf alone for ever that is 99 % of one class.
    rng, sampler = np.random.default_rng(8), ConditionalSampler(seed=1)
    for _ in range(6000):
        u = float(rng.random())
        sampler.update({"fault": u > 0.995, "u": u})
    assert sampler.distribution("fault", {"u": 0.5}, {"u"}) == [(False, 1.0)]
    assert dict(sampler.distribution("fault", {"u": 0.999}, {"u"}))[True] > 0.8


def test_an_alternate_has_values_of_the_new_concept_when_it_takes_over():
    rng, sampler, n_empty, before = np.random.default_rng(9), ConditionalSampler(seed=1), 0, None
    for t in range(6000):
        u = float(rng.random())
        sampler.update({"u": u, "high": (u > 0.5) != (t >= 2000)})
        if t < 2000:
            continue
        tree = sampler._known["high"].tree
        if tree._root is not before:
            n_empty += any(sampler.draw("high", {"u": v}, {"u"}, 0.5) is EMPTY for v in (0.1, 0.9))
        before = tree._root
    assert tree._n_alternate_trees > 0
    assert n_empty == 0
    assert sampler.distribution("high", {"u": 0.9}, {"u"}) == [(False, 1.0)]


def brute_force(rows, numeric):
    """Impurity decrease of every split into values up to a threshold and those above, straight from the rows."""

    def impurity(ys):
        if numeric:
            return float(np.var(ys)) * len(ys) if len(ys) else 0.0
        _, n = np.unique(ys, return_counts=True)
        return -float(np.sum(n * np.log(n / len(ys)))) if len(ys) else 0.0

    xs, ys = np.array([x for x, _ in rows]), np.array([y for _, y in rows])
    return {
        t: impurity(ys) - impurity(ys[xs <= t]) - impurity(ys[xs > t])
        for t in np.unique(xs)[:-1].tolist()
        if min((xs <= t).sum(), (xs > t).sum()) >= 5
    }


@pytest.mark.parametrize("numeric", [True, False])
@pytest.mark.parametrize("digits", [1, 8])
@pytest.mark.parametrize("order", ["mixed", "rising"])
def test_thresholds_have_the_exact_statistics_of_both_sides(numeric, digits, order):
    rng = np.random.default_rng(10)
    rows = []
    for _ in range(400):
        x = round(float(rng.random()), digits)
        rows.append((x, x * x + float(rng.normal()) / 10 if numeric else int(rng.random() < x)))
    if order == "rising":
        rows.sort()
    observer = BinnedObserver(numeric)
    for x, y in rows:
        observer.update(x, y, 1.0)
    assert len(observer._bins) <= MAX_BINS
    assert observer.n == 400
    assert all(low <= high for low, high in zip(observer._lowest, observer._highest, strict=True))
    assert all(a < b for a, b in zip(observer._highest, observer._lowest[1:], strict=False))
    assert max(observer._weights) <= 400 / 6  # none has swallowed the others
    suggestion = observer.best_evaluated_split_suggestion(None, None, "x", False)
    gains = brute_force(rows, numeric)
    threshold, merit = suggestion.split_info, suggestion.merit * 400 * (1 if numeric else math.log(2))
    assert merit == pytest.approx(gains[threshold], rel=1e-9)
    # Few values: the best of all thresholds. Many: the best of thirty, and near it.
    assert merit == pytest.approx(max(gains.values()), rel=1e-9 if digits == 1 else 0.15)
    for side, child in zip((lambda x: x <= threshold, lambda x: x > threshold), suggestion.children_stats, strict=True):
        ys = [y for x, y in rows if side(x)]
        if numeric:
            assert (child.n, child.mean.get()) == (len(ys), pytest.approx(np.mean(ys)))
            assert child.get() == pytest.approx(np.var(ys, ddof=1))
        else:
            assert child == {y: ys.count(y) for y in set(ys)}


@pytest.mark.parametrize("numeric", [True, False])
def test_categories_have_the_exact_statistics_of_each(numeric):
    rng, rows = np.random.default_rng(11), []
    for _ in range(300):
        k = int(rng.integers(4))
        rows.append((k, k % 2 + float(rng.random()) if numeric else int(rng.random() < 0.1 + 0.8 * (k % 2))))
    observer = NominalObserver(numeric)
    for k, y in rows:
        observer.update(k, y, 1.0)
    suggestion = observer.best_evaluated_split_suggestion(None, None, "k", False)
    assert (suggestion.multiway_split, suggestion.split_info, observer.n) == (True, [0, 1, 2, 3], 300)
    for k, child in enumerate(suggestion.children_stats):
        ys = [y for x, y in rows if x == k]
        assert (
            child == {y: ys.count(y) for y in set(ys)}
            if not numeric
            else child.mean.get() == pytest.approx(np.mean(ys))
        )
    # One that stands out among many is split off alone.
    lonely = NominalObserver(numeric)
    for i in range(1000):
        lonely.update(i % 40, 5 * (i % 40 == 7) + i % 3, 1.0)
    suggestion = lonely.best_evaluated_split_suggestion(None, None, "k", False)
    assert (suggestion.multiway_split, suggestion.split_info) == (False, 7)


def test_the_merit_is_what_rivers_criteria_say():
    rng = np.random.default_rng(12)
    counts, moments = BinnedObserver(False), BinnedObserver(True)
    whole_counts, whole_moments = Counts(), Moments()
    for _ in range(300):
        x = round(float(rng.random()), 1)
        counts.update(x, rng.random() < x, 1.0)
        moments.update(x, x, 1.0)
    for part in counts._bins:
        whole_counts.merge(part)
    for part in moments._bins:
        whole_moments.merge(part)
    suggestion = counts.best_evaluated_split_suggestion(None, None, "x", False)
    river = InfoGainSplitCriterion(0.01).merit_of_split(whole_counts.as_river(), suggestion.children_stats)
    assert suggestion.merit == pytest.approx(river, rel=1e-12)
    suggestion = moments.best_evaluated_split_suggestion(None, None, "x", False)
    river = VarianceReductionSplitCriterion().merit_of_split(whole_moments.as_river(), suggestion.children_stats)
    assert suggestion.merit == pytest.approx(river, rel=0.01)  # River's variances are divided by n - 1


def test_recent_rows_are_found_by_their_number_until_they_are_overwritten():
    recent = RecentRows(3)
    for number in range(1, 9):
        recent.add(number, {"number": number})
        for asked in range(1, number + 1):
            assert recent.get(asked) == ({"number": asked} if asked > number - 3 else None)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_detector_of_a_regression_tree_sees_errors_in_any_unit(unit):
    def alarms(errors):
        detector = RelativeADWIN()
        return [i for i, error in enumerate(errors) if (detector.update(error * unit), detector.drift_detected)[1]]

    rng = np.random.default_rng(13)
    before, after = np.abs(rng.normal(size=1500)), np.abs(rng.normal(size=500)) * 2
    assert alarms(before.tolist()) == []
    found = alarms([*before.tolist(), *after.tolist()])
    assert found
    assert 1500 < found[0] < 1700
    assert alarms([0.0] * 100) == []


def test_river_s_own_detector_does_not():
    # Why there is one of our own: should this fail, River has learnt it too.
    rng, detector = np.random.default_rng(13), drift.ADWIN()
    for i in range(2000):
        detector.update(abs(float(rng.normal())) * 1e-6 * (1 + (i >= 1500)))
        assert not detector.drift_detected


def test_categories_get_numbers_of_their_own_as_long_as_there_are_some():
    colours = Nominal(max_categories=3, forget_after=10)
    assert [colours.learn(value, 1) for value in ("red", 7, ("a", None), "blue", "red")] == [0, 1, 2, OTHER, 0]
    assert [colours.code(value) for value in (7.0, "blue", "never", None, float("nan"), {})] == [
        1,
        -1,
        -1,
        None,
        None,
        None,
    ]
    assert [colours.learn(value, 11) for value in ("red", "blue")] == [0, OTHER]  # 7 has been gone for 10
    assert colours.learn("blue", 12) == 1
    assert [colours.code(value) for value in ("red", 7, ("a", None), "blue")] == [0, OTHER, 2, 1]
    assert [Numeric().code(value) for value in (1, True, "1", math.inf, 10**400)] == [1.0, 1.0, None, None, None]


def test_neighbouring_bins_are_merged_by_weight_not_by_distance():
    observer = BinnedObserver(True)
    for i in range(MAX_BINS):
        for _ in range(3 if i in (4, 5) else 5):
            observer.update(float(i), 1.0, 1.0)
    observer.update(1000.0, 1.0, 9.0)
    assert (4.0, 5.0) in list(zip(observer._lowest, observer._highest, strict=True))
    assert sorted(observer._highest) == observer._highest
    assert all(b > a for a, b in pairwise(observer._highest))

"""Observational removal by shifted rows: against closed forms, enumeration, and naive evaluation of the same draws."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from attributary_explainers import (
    IncrementalPFI,
    IncrementalSAGE,
    ShiftedImputer,
)
from attributary_explainers.core.observational import RIDGE, choose, couple, discriminant, learn, probabilities
from attributary_explainers.removal.sampler import ShiftedSampler
from attributary_explainers.removal.strata import SlotOrder

from .dependent_rows import alone, filled, gaussian, kite, named


def test_draws_of_gaussians_have_the_conditional_mean_and_covariance():
    X, S = gaussian(4000)
    imputer, rng = filled(named(X))
    assert not imputer.sampler.found.bent.any()
    for x in X[:3]:
        row = named([x])[0]
        for kept in ([0], [1, 3], [0, 1, 2]):
            absent = [j for j in range(4) if j not in kept]
            (rows,) = imputer.restrict(row, alone(row), [[f"g{j}" for j in kept]], 4000, rng).rows
            drawn = np.array([[r[f"g{j}"] for j in range(4)] for r in rows])
            assert (drawn[:, kept] == x[kept]).all()
            slope = S[np.ix_(absent, kept)] @ np.linalg.inv(S[np.ix_(kept, kept)])
            left = S[np.ix_(absent, absent)] - slope @ S[np.ix_(kept, absent)]
            sd = np.sqrt(np.diag(left))
            # What 500 stored rows and a regression from some 2000 leave open: about a tenth of a standard deviation.
            assert (np.abs(drawn[:, absent].mean(axis=0) - slope @ x[kept]) < 0.25 * sd).all()
            assert np.atleast_2d(np.cov(drawn[:, absent].T)) == pytest.approx(left, rel=0.25, abs=0.12 * left.max())


@pytest.mark.long
def test_the_importance_of_gaussians_is_exact_within_a_tenth():
    X, S = gaussian(6000, seed=8, d=3)
    beta = np.array([1.0, -2.0, 0.5])
    left = 1.0 / np.diag(np.linalg.inv(S))  # a thousandth of the variance: each is nearly determined by the others
    pfi = IncrementalPFI(
        lambda x: sum(b * x[f"g{j}"] for j, b in enumerate(beta)),
        loss="squared",
        removal="observational",
        alpha=0.002,
        seed=1,
    )
    for x, row in zip(X, named(X), strict=True):
        pfi.explain_one(row, float(x @ beta))
    exact = 2.0 * beta**2 * left
    found = np.array([pfi.importance[f"g{j}"] for j in range(3)])
    assert np.abs(found - exact).sum() < 0.1 * exact.sum()


def test_without_dependence_draws_are_of_stored_rows_as_they_are():
    rng = np.random.default_rng(5)
    rows = [{"a": rng.normal(), "b": rng.exponential(), "c": "pq"[rng.integers(2)]} for _ in range(3000)]
    imputer, rng = filled(rows)
    x = {"a": 1.5, "b": 2.0, "c": "p"}
    stored = np.array([row["b"] for row in imputer.reservoir.rows])
    drawn = np.array([row["b"] for row in imputer.replace_each(x, alone(x), 4000, rng).rows[1]])
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(stored, [0.1, 0.5, 0.9]), abs=0.15)
    apart = np.abs(drawn[:, None] - stored[None]).min(axis=1)
    assert np.median(apart) < 0.02  # shifted by what chance says of a and c


TABLE = np.array([[[0.20, 0.02], [0.05, 0.08]], [[0.03, 0.12], [0.02, 0.10]], [[0.01, 0.09], [0.20, 0.08]]])
"""Shares of u in 0 … 2, v in 0 … 1, w in 0 … 1."""


def test_categories_are_drawn_with_their_conditional_probabilities():
    rng = np.random.default_rng(6)
    cells = rng.choice(12, size=6000, p=TABLE.ravel())
    rows = [
        {"u": "xyz"[u], "v": bool(v), "w": ["no", "yes"][w]}
        for u, v, w in zip(*np.unravel_index(cells, TABLE.shape), strict=True)
    ]
    imputer, rng = filled(rows)
    worst = 0.0
    for v, w in itertools.product(range(2), range(2)):
        x = {"u": "x", "v": bool(v), "w": ["no", "yes"][w]}
        drawn = [row["u"] for row in imputer.replace_each(x, alone(x), 4000, rng).rows[0]]
        exact = TABLE[:, v, w] / TABLE[:, v, w].sum()
        worst = max(worst, *(abs(drawn.count(level) / 4000 - p) for level, p in zip("xyz", exact, strict=True)))
    # The table is no additive model; without it the largest difference is .45, that of the marginal shares.
    assert worst < 0.25
    for u in range(3):  # one feature given another one: there is nothing that is not additive
        x = {"u": "xyz"[u], "v": True, "w": "no"}
        drawn = [row["w"] for row in imputer.restrict(x, alone(x), [["u"]], 4000, rng).rows[0]]
        exact = TABLE[u, :, 1].sum() / TABLE[u].sum()
        assert drawn.count("yes") / 4000 == pytest.approx(exact, abs=0.06)


@pytest.mark.long
def test_a_spread_that_depends_on_another_feature_is_found_and_drawn():
    rng = np.random.default_rng(7)
    X = kite(5000, rng)
    imputer, rng = filled(named(X))
    assert imputer.sampler.is_matching
    apart = marginal = exact = 0.0
    t = np.linspace(-1.0, 1.0, 401)
    for x in X[:300]:
        row = named([x])[0]
        drawn = np.array([r["g1"] for r in imputer.replace_each(row, alone(row), 20, rng).rows[1]])
        apart += np.mean((drawn - x[1]) ** 2)
        marginal += np.mean((X[:1000, 1] - x[1]) ** 2)
        weights = np.exp(-0.5 * ((x[0] - 2.0 * t) / 0.15) ** 2)  # the place along the edges, up to the sign of g1
        second = (weights * (4.0 * (1.0 - np.abs(t)) ** 2 + 0.15**2)).sum() / weights.sum()
        exact += second + x[1] ** 2  # its mean is 0
    assert apart == pytest.approx(exact, rel=0.1)
    assert marginal == pytest.approx(exact, rel=0.1)  # a sum of squares does not tell; the fourth power does
    quiet = [named([x])[0] for x in X if abs(x[0]) > 1.9][:100]
    spread = [r["g1"] for row in quiet for r in imputer.replace_each(row, alone(row), 10, rng).rows[1]]
    assert np.std(spread) < 0.5 < np.std(X[:, 1]) / 1.5


def test_a_bent_dependence_is_drawn():
    rng = np.random.default_rng(8)
    a = rng.uniform(-2.0, 2.0, 5000)
    X = np.stack([a, np.abs(a - 0.5) ** 1.5 + 0.2 * rng.standard_normal(5000)], axis=1)
    imputer, rng = filled(named(X))
    assert imputer.sampler.found.bent[0]
    means = []
    for at in np.linspace(-1.9, 1.9, 39):
        x = {"g0": float(at), "g1": 0.0}
        drawn = np.array([r["g1"] for r in imputer.replace_each(x, alone(x), 400, rng).rows[1]])
        means.append(drawn.mean() - abs(at - 0.5) ** 1.5)
        assert drawn.std() < 0.35
    # At one place a few rows are likely, so that the mean of their residuals stays; it has to average out.
    assert abs(np.mean(means)) < 0.05
    assert np.std(means) < 0.2


@pytest.mark.long
def test_a_number_that_follows_a_product_is_drawn():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((6000, 3))
    X[:, 2] = X[:, 0] * X[:, 1] + 0.5 * X[:, 2]
    imputer, rng = filled(named(X))
    assert (1, 0) in imputer.sampler.learnt.products
    for a, b in ((1.2, 1.2), (1.2, -1.2), (-1.0, 1.0), (0.0, 0.0)):
        x = {"g0": a, "g1": b, "g2": 0.0}
        drawn = np.array([r["g2"] for r in imputer.replace_each(x, alone(x), 2000, rng).rows[2]])
        assert drawn.mean() == pytest.approx(a * b, abs=0.25)
        assert 0.3 < drawn.std() < 0.8


# The core against a naive evaluation of the same draws.


def test_walks_of_linear_dependence_are_the_regression_written_out():
    X, _ = gaussian(600, seed=11)
    imputer, _ = filled(named(X), size=200)
    sampler, x = imputer.sampler, np.array([0.5, -1.0, 2.0, 0.3])
    assert not sampler.found.bent.any()
    assert not sampler.is_matching
    order = np.array([2, 0, 3, 1])
    drawn, slots = sampler.draw_walk(x, order[None], np.arange(1, 4)[None], 6, np.random.default_rng(4))
    encoding = sampler.encoding
    z = lambda rows: (np.asarray(rows) - encoding.center) / encoding.scale  # noqa: E731
    values = sampler.learnt.columns.start[:-1]
    C = sampler.learnt.symmetric()[np.ix_(values, values)]
    C = C + RIDGE * np.diag(np.diag(C))
    for k, draw in itertools.product(range(3), range(6)):
        now, stored = x.copy(), np.array(list(imputer.reservoir.rows[slots[k, draw]].values()))
        for p in range(k + 1, 4):
            known, j = order[:p], order[p]
            slope = np.linalg.solve(C[np.ix_(known, known)], C[known, j])
            now[j] = stored[j] + encoding.scale[j] * slope @ (z(now) - z(stored))[known]
        assert drawn[k, draw] == pytest.approx(now, rel=1e-9, abs=1e-9)


def test_single_draws_of_linear_dependence_are_the_regression_on_all_others():
    X, _ = gaussian(600, seed=12)
    imputer, _ = filled(named(X), size=200)
    sampler, x = imputer.sampler, np.array([0.5, -1.0, 2.0, 0.3])
    drawn, slots = sampler.draw_each(x, np.arange(4), 5, np.random.default_rng(4))
    covariance = sampler._regression.covariance
    C = np.tril(covariance) + np.tril(covariance, -1).T
    C = C + RIDGE * np.diag(np.diag(C))
    for j, draw in itertools.product(range(4), range(5)):
        others = [i for i in range(4) if i != j]
        stored = np.array(list(imputer.reservoir.rows[slots[j, draw]].values()))
        slope = np.linalg.solve(C[np.ix_(others, others)], C[others, j]) * sampler.encoding.scale[j]
        move = slope @ ((x - stored) / sampler.encoding.scale)[others]
        assert drawn[j, draw] == pytest.approx(stored[j] + move, rel=1e-9, abs=1e-9)


def test_the_moments_are_those_of_the_pairs_that_are_there():
    rng, n = np.random.default_rng(13), 50
    X = rng.standard_normal((n, 3)) @ rng.standard_normal((3, 3))
    X[rng.random((n, 3)) < 0.2] = math.nan
    X[:20, 2] = math.nan  # comes late
    counts, mean, covariance = np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for row in range(n):
        learn(X, row, np.arange(3), 0.0, counts, mean, covariance, np.empty(3), np.empty(3))
    assert counts.tolist() == (~np.isnan(X)).sum(axis=0).tolist()
    assert mean == pytest.approx(np.nanmean(X, axis=0))
    assert np.diag(covariance) == pytest.approx(np.nanvar(X, axis=0))


def test_candidates_are_chosen_with_kernel_weights():
    rng = np.random.default_rng(14)
    distances, chosen = np.concatenate([[9e9], rng.exponential(size=6), [9e9]]), np.zeros(40_000, dtype=np.int64)
    choose(distances, 1, 7, rng.random(40_000), 0, 40_000, 2, np.zeros(9), chosen, 0)
    h = np.sort(distances[1:7])[1]
    weights = np.exp(-distances[1:7] / (2.0 * h))
    shares = np.bincount(chosen, minlength=8)[1:7] / 40_000
    assert shares == pytest.approx(weights / weights.sum(), abs=0.01)


def test_the_coupling_has_the_distribution_that_it_is_to_have_and_changes_least():
    rng = np.random.default_rng(15)
    to, start = np.array([0.5, 0.2, 0.3]), np.array([0.2, 0.6, 0.2])
    before = rng.choice(3, size=60_000, p=start)
    after = np.array([couple(to, start, 3, now, *rng.random(2)) for now in before.tolist()])
    assert np.bincount(after) / 60_000 == pytest.approx(to, abs=0.01)
    assert (after != before).mean() == pytest.approx(0.5 * np.abs(to - start).sum(), abs=0.01)


@pytest.mark.long
def test_the_discriminant_is_that_of_gaussian_classes():
    # Classes of equal covariance: Bayes' rule is closed, and what the moments give has to be it.
    shares, means = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.0], [2.0, 0.5], [-1.0, 1.5]])
    center = shares @ means
    S = np.eye(2) + (means - center).T @ np.diag(shares) @ (means - center)
    with_levels = np.diag(shares[:2]) @ (means[:2] - center)  # cov(1_c, x)
    slope = with_levels @ np.linalg.inv(S)
    scores, out = np.zeros((1, 3, 3)), np.zeros(3)
    discriminant(slope @ with_levels.T, shares, 2, scores, 0)
    for x in np.random.default_rng(16).normal(size=(20, 2), scale=1.5):
        probabilities(slope @ (x - center), 2, scores, 0, out)
        exact = shares * np.exp(-0.5 * ((x - means) ** 2).sum(axis=1))
        assert out == pytest.approx(exact / exact.sum(), abs=0.02)


# Identities.


def test_units_of_features_do_not_matter():
    X, _ = gaussian(1200, seed=17)
    X[:, 1] += np.abs(X[:, 0])
    factors = np.array([2.0**20, 2.0**-20, 1.0, 2.0**40])
    plain, rng = filled(named(X))
    scaled, other = filled(named(X * factors))
    x = X[0]
    for row, drawn in zip(
        plain.sampler.draw_each(x, np.arange(4), 8, rng)[0],
        scaled.sampler.draw_each(x * factors, np.arange(4), 8, other)[0] / factors[:, None],
        strict=True,
    ):
        assert row == pytest.approx(drawn, rel=1e-9, abs=1e-9)


def test_the_two_halves_of_the_draws_are_of_the_older_and_the_younger_rows():
    rng = np.random.default_rng(18)
    X = kite(1500, rng)
    imputer, rng = filled(named(X), size=100)
    sampler = imputer.sampler
    older = set(sampler.ages[:50])
    for m in (1, 2, 5, 10):
        _, slots = sampler.draw_each(X[0], np.arange(2), m, rng)
        _, walked = sampler.draw_walk(X[0], np.array([[1, 0]]), np.array([[1]]), m, rng)
        for row in (*slots.tolist(), *walked.tolist()):
            if m > 1:
                assert all((slot in older) == (i < m // 2) for i, slot in enumerate(row))


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_what_the_model_ignores_and_nothing_depends_on_has_no_importance(explainer):
    rng = np.random.default_rng(19)
    own = explainer(lambda x: x["a"] + x["b"], loss="squared", removal="observational", seed=2)
    for _ in range(1500):
        a = rng.normal()
        x = {"a": a, "b": a + rng.normal(), "idle": rng.normal()}
        own.explain_one(x, x["a"] + x["b"])
    if explainer is IncrementalPFI:
        assert own.importance["idle"] == 0.0
    else:
        assert sum(own.importance.values()) == pytest.approx(own.marginal_loss - own.model_loss)
        assert abs(own.importance["idle"]) < 0.05 * sum(own.importance.values())


# A stranger's stream.


def strange(n, seed=20):
    rng = np.random.default_rng(seed)
    for i in range(n):
        a = rng.normal()
        x = {
            "b": a + 0.5 * rng.normal(),
            "a": a,
            "c": "uvw"[int(np.clip(a + 1.5, 0, 2))],
            "k": int(rng.poisson(2 + abs(a))),
        }
        x |= {"big": 2**60 + int(rng.integers(5)), "same": 1.0, "flag": bool(a > 0), "twin": a, "list": [1]}
        if rng.random() < 0.1:
            x["a"] = None if i % 2 else math.nan
        if rng.random() < 0.02:
            x["b"] = math.inf
        if i > 300 and rng.random() < 0.5:
            x["new"] = a + rng.normal()
        if i > 500 and rng.random() < 0.2:
            x["c"] = "late"
        if i % 50 == 0:
            x["c"] = f"rare {i}"
        if i > 400:
            del x["twin"]
        yield x


def test_values_are_of_the_kind_that_the_feature_has():
    imputer, rng = filled(strange(1200))
    assert "late" in imputer.sampler.encoding.features[imputer.sampler.encoding.position["c"]].levels
    x = {**next(iter(strange(1))), "new": 0.5}
    seen = {
        name: {repr(row[name]) for row in imputer.reservoir.rows if name in row} for name in ("c", "k", "big", "flag")
    }
    players = alone(x)
    coalitions = [["a"], ["a", "c", "new"], [], list(x)]
    for rows in (
        *imputer.replace_each(x, players, 20, rng).rows,
        *imputer.restrict(x, players, coalitions, 20, rng).rows,
    ):
        for row in rows:
            assert all(repr(row[name]) in seen[name] or row[name] == x[name] for name in seen if name in row)
            assert list(row) == [name for name in x if name in row]


@pytest.mark.parametrize("groups", [None, {"both": ["a", "c"], "none": ["not there"]}])
@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.share(2, "explainer", "groups")
def test_a_restored_explainer_goes_on_bit_for_bit(explainer, groups):
    def model(x):
        return float(x["k"] + (x["c"] == "late") + (x.get("new") or 0.0)) if "c" in x and "k" in x else 0.0

    own = explainer(model, loss="squared", removal="observational", alpha=0.01, groups=groups, seed=3)
    own.know_names()  # of the group `none` no row ever has a feature
    rows, again = list(strange(640)), None
    for i, x in enumerate(rows):
        found = own.explain_one(x, 1.0)
        if again is not None:
            assert again.explain_one(x, 1.0) == found
        if i in (50, 520, 580):
            again = explainer.from_snapshot(pickle.loads(pickle.dumps(own.snapshot())), model)
    assert repr(again.snapshot()) == repr(own.snapshot())


def test_margins_that_drift_take_the_knots_with_them():
    rng = np.random.default_rng(22)
    rows = [{"a": a + i / 100, "b": (a**2 + 0.1 * rng.normal())} for i, a in enumerate(rng.normal(size=3000))]
    imputer, _ = filled(rows, size=200)
    feature = imputer.sampler.encoding.features[0]
    stored = [row["a"] for row in imputer.reservoir.rows]
    assert min(stored) < feature.center < max(stored)
    assert abs(feature.center - np.median(stored)) < 3 * np.std(stored)


def test_the_state_is_small():
    X = np.random.default_rng(23).standard_normal((700, 10))
    sampler, rows, by_age = ShiftedSampler(500, 0.001), [], SlotOrder()
    for i, x in enumerate(named(X)):
        rows = [*rows, x] if i < 500 else [*rows[: i % 500], x, *rows[i % 500 + 1 :]]
        by_age.put(i % 500, i)
        sampler.update(x, i % 500, rows, by_age)
    assert len(pickle.dumps(sampler.snapshot())) < 64_000


@pytest.mark.parametrize("d", [1, 30, 100])
def test_any_number_of_features_is_drawn(d):
    X = np.random.default_rng(24).standard_normal((250, d)).cumsum(axis=1)
    imputer, rng = filled(named(X), size=150)
    x = named(X)[0]
    assert sum(map(len, imputer.replace_each(x, alone(x), 2, rng).rows)) == 2 * d
    assert len(imputer.sampler.columns.kind) <= 256


@pytest.mark.long
def test_a_quotient_is_drawn_from_a_product_and_its_factor():
    rng = np.random.default_rng(30)
    X = rng.standard_normal((5000, 3))
    X[:, 2] = X[:, 0] * X[:, 1] + 0.4 * X[:, 2]
    imputer, rng = filled(named(X), alpha=0.001)
    misses = spread = 0.0
    for x in X[-200:]:
        row = named([x])[0]
        drawn = np.array([r["g0"] for r in imputer.replace_each(row, alone(row), 50, rng).rows[0]])
        precision = 1.0 + (x[1] / 0.4) ** 2  # of g0 given the other two
        misses += ((drawn - x[0]) ** 2).mean()
        spread += 1.0 / precision + (x[0] - x[1] * x[2] / 0.16 / precision) ** 2
    assert misses == pytest.approx(spread, rel=0.35)  # marginal draws: twice the variance, three times as much


def test_nothing_is_explained_before_there_is_enough_to_learn_from() -> None:
    """What is drawn before does not fit the kept features: importance would begin with another one, and stay wide."""
    rng = np.random.default_rng(4)
    pfi = IncrementalPFI(lambda x: x["a"], loss="squared", removal="observational", seed=4)
    widths = []
    for n in range(1, 3001):
        a = float(rng.normal())
        x = {"a": a, "b": a + 0.3 * float(rng.normal())}
        pfi.explain_one(x, a)
        assert (pfi.n_observations > 0) <= (len(pfi.reservoir) >= 100)
        if n in (1000, 3000):
            widths.append(pfi.half_width["a"])
    # Of a given b, a varies by .09 / 1.09: PFI is twice that.
    exact = 2 * 0.09 / 1.09
    assert abs(pfi.importance["a"] - exact) < 0.15 * exact
    assert max(widths) < 0.5 * exact


def come_loose(seed):
    """Six features of two slow influences, with hardly any noise of their own; the first drifts away for a while."""
    rng = np.random.default_rng(seed)
    slow = np.zeros((2, 2300))
    for t in range(1, 2300):
        slow[:, t] = 0.98 * slow[:, t - 1] + rng.normal(0.0, 0.2, 2)
    X = (rng.normal(size=(6, 2)) @ slow).T + rng.normal(0.0, 0.02, (2300, 6))
    X[1500:2100, 0] += np.linspace(0.0, 6.0 * X[:, 0].std(), 600)
    return X


@pytest.mark.long
def test_many_features_are_drawn_when_their_regression_is_known() -> None:
    """As many observations as features tell anything of any feature: importances were six times as large."""
    rng, n_before = np.random.default_rng(1), 0
    pfi = IncrementalPFI(
        lambda x: 3.0 * x["g0"], loss="squared", alpha=0.02, n_samples=3, seed=1, removal="observational"
    )
    for i, x in enumerate(named(rng.normal(size=(1300, 60)))):
        pfi.explain_one(x, 3.0 * x["g0"])
        n_before = i if pfi.n_observations == 0 else n_before
        if pfi.n_observations >= 50:
            assert pfi.importance["g0"] < 2.0 * 18.0  # which is what it is by interventional removal
    assert 600 <= n_before < 1100, "ten of each feature, but those that wait"
    assert pfi.importance["g0"] == pytest.approx(18.0, rel=0.4)


@pytest.mark.parametrize("seed", [4, pytest.param(5, marks=pytest.mark.long)])
def test_no_draw_lies_far_beyond_what_has_been(seed):
    """The regression learns to tell the drift from tiny differences, and then says anything of what is out of line."""
    rng, rows = np.random.default_rng(seed), named(come_loose(seed))
    imputer, players = ShiftedImputer(alpha=0.01), alone(rows[0])
    for t, x in enumerate(rows):
        if t > 1900 and t % 5 == 0:
            seen = np.array([list(row.values()) for row in [*imputer.reservoir.rows, x]])
            low, high = seen.min(axis=0), seen.max(axis=0)
            half = (high - low) / 2.0 + 1e-9
            singles = imputer.replace_each(x, players, 4, rng).rows
            groups = imputer.restrict(x, players, [["g1"], ["g0", "g3"], list(players)[1:]], 4, rng).rows
            for drawn in (np.array([list(row.values()) for row in rows]) for rows in (*singles, *groups)):
                assert (drawn >= low - half).all()
                assert (drawn <= high + half).all()
        imputer.update(x, None, rng)


def test_what_only_rises_is_drawn_as_before():
    """Each observation is beyond all stored ones: what is told of it is no error then."""
    rng = np.random.default_rng(1)
    level = 0.1 * np.arange(4000)[:, None]
    X = level + rng.normal(size=(4000, 5))
    pfi = IncrementalPFI(lambda x: x["g0"], loss="squared", removal="observational", alpha=0.002, n_samples=5, seed=1)
    for row in named(X):
        pfi.explain_one(row, row["g0"])
    # Four others tell the level with a variance of a quarter; a draw and what is there are two of such residuals.
    assert pfi.importance["g0"] == pytest.approx(2.0 * (1.0 + 1.0 / 4.0), rel=0.1)

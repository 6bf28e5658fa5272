"""The benchmark of harm: populations are what they claim, figures have closed forms, the page has the results."""

from __future__ import annotations

import json
import math
from itertools import product

import numpy as np
import pytest
from benchmarks.harm import classes, numbers, page, quiet
from benchmarks.harm.__main__ import ROWS, main, parse
from benchmarks.harm.feeding import CHANGE_AT, Shift, Told, feed, mappings, nothing, of_many, of_two, summed, workers
from benchmarks.harm.frozen import Trial, by_kind
from benchmarks.harm.learning import AT, CHANGES, stream
from benchmarks.harm.worlds import damages as d
from benchmarks.harm.worlds.kinds import KINDS, Figures, clean, damaged, flipped, measured
from benchmarks.harm.worlds.subjects import LOANS, PUMPS, UNREAD, Subject, auc, log_loss, matthews, precision, recall
from scipy.stats import norm

from attributary_explainers import LossMonitor


class Knows:
    """A model that knows the truth of its population."""

    def __init__(self, population):
        self.population = population

    def predict_proba(self, x):
        full = np.zeros((len(x), 20))
        full[:, :17] = x
        p = self.population.probability(full)
        return np.column_stack((1 - p, p))


@pytest.fixture(params=[LOANS, PUMPS], ids=["loans", "pumps"])
def knows(request) -> Subject:
    return Subject("knows", request.param, Knows(request.param))


# ---------------------------------------------------------------- measures


def test_auc_is_the_share_of_pairs_in_order_and_ties_count_half():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 60), rng.integers(0, 8, 60).astype(float)
    pairs = [(a > b) + (a == b) / 2 for (a, k), (b, m) in product(zip(score, y, strict=True), repeat=2) if k > m]
    assert auc(y, score) == pytest.approx(np.mean(pairs))


def test_auc_of_two_normal_classes():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200_000) + np.arange(200_000) % 2
    assert auc(np.arange(200_000) % 2, x) == pytest.approx(norm.cdf(1 / math.sqrt(2)), abs=0.003)


def test_auc_of_probabilities_is_that_of_their_labels_in_the_mean():
    rng = np.random.default_rng(2)
    q = rng.beta(1, 2, size=300_000)
    assert auc(q, q) == pytest.approx(auc(rng.random(len(q)) < q, q), abs=0.003)


def test_the_log_loss_of_the_truth_is_its_entropy_and_of_others_more_by_the_divergence():
    q, p = np.array([0.2, 0.7]), np.array([0.5, 0.5])
    entropy = -np.mean(q * np.log(q) + (1 - q) * np.log(1 - q))
    assert log_loss(q, q) == pytest.approx(entropy)
    assert log_loss(q, p) == pytest.approx(math.log(2))
    assert log_loss([1, 0], np.array([0.9, 0.2])) == pytest.approx(-np.mean(np.log([0.9, 0.8])))
    assert log_loss([1.0], np.array([0.0])) == pytest.approx(-math.log(1e-3)), "one row is not the whole loss"


def test_matthews_coefficient_precision_and_recall():
    truth, told = [True, True, True, False, False], [True, True, False, True, False]
    assert matthews(truth, told) == pytest.approx(np.corrcoef(truth, told)[0, 1])
    assert matthews(truth, truth) == 1.0
    assert matthews(truth, [False] * 5) == 0.0
    assert (precision(truth, told), recall(truth, told)) == (2 / 3, 2 / 3)
    assert math.isnan(precision(truth, [False] * 5))


# ---------------------------------------------------------------- populations and kinds


def test_labels_are_as_frequent_as_the_truth_says(knows):
    for name, kind in KINDS.items():
        x, y, q = kind.make(knows, np.random.default_rng(3), 20_000)
        assert x.shape == (20_000, 20), name
        assert abs(y.mean() - q.mean()) < 4 * math.sqrt(np.mean(q * (1 - q)) / 20_000), name
        above = q > np.median(q)
        spread = math.sqrt(np.mean(q[above] * (1 - q[above])) / above.sum())
        assert abs(y[above].mean() - q[above].mean()) < 4 * spread, name


def test_a_model_that_knows_the_truth_has_no_regret_and_none_where_inputs_move(knows):
    for name, kind in KINDS.items():
        if kind.inputs:
            assert abs(measured(knows, kind.make, 20_000).regret) < 1e-3, name
    assert measured(knows, KINDS["best column permuted"].make, 20_000).regret > 0.05


def test_flipped_labels_cost_what_the_closed_form_says(knows):
    before, after = measured(knows, clean, 20_000), measured(knows, flipped(0.25), 20_000)
    was, now = before.positives, 0.25 + 0.5 * before.positives
    assert after.positives == pytest.approx(now)
    kept = 0.5 * was * (1 - was) / (now * (1 - now))
    assert after.auc - 0.5 == pytest.approx(kept * (before.auc - 0.5), rel=1e-3)


def test_the_share_of_positives_is_what_it_was_times_the_factor(knows):
    share = knows.population.probability(knows.sample).mean()
    for name, factor in (("positives 1.5 times as frequent", 1.5), ("positives .6 times as frequent", 0.6)):
        _, y, _ = KINDS[name].make(knows, np.random.default_rng(4), 20_000)
        assert y.mean() == pytest.approx(factor * share, abs=0.01)
        assert abs(measured(knows, KINDS[name].make, 20_000).auc - measured(knows, clean, 20_000).auc) < 0.006


def test_unread_columns_are_not_read(knows):
    rows = clean(knows, np.random.default_rng(5), 500)
    moved = damaged(knows, np.random.default_rng(6), rows, d.moved(5.0), list(UNREAD))
    assert np.array_equal(knows.predict(rows.x), knows.predict(moved.x))
    assert not np.array_equal(rows.x, moved.x)


def test_damages_of_a_column():
    rng, clean_values = np.random.default_rng(7), np.random.default_rng(8).normal(2.0, 3.0, 4000)
    v = clean_values.copy()

    def after(damage):
        return damage(rng, clean_values, v)

    assert after(d.noise(1.0)).std() == pytest.approx(math.sqrt(2) * 3.0, rel=0.05)
    grown = after(d.growing_noise(1.0)) - v
    assert grown[:400].std() < 0.3
    assert grown[-400:].std() == pytest.approx(2.85, rel=0.15)
    assert sorted(after(d.permuted())) == sorted(v)
    assert np.mean(after(d.permuted(0.1)) != v) == pytest.approx(0.1, abs=0.03)
    assert len(set(after(d.stuck))) == 1
    bursts = after(d.stuck_in_bursts)
    assert len(set(bursts[800:1000])) == 1
    assert np.array_equal(bursts[1000:1600], v[1000:1600])
    assert np.mean(after(d.missing(0.3)) == clean_values.mean()) == pytest.approx(0.3, abs=0.04)
    assert after(d.unit(2.0, 1.0)) == pytest.approx(2 * v + 1)
    assert after(d.turned) + v == pytest.approx(np.full(len(v), 2 * clean_values.mean()))
    assert np.mean(after(d.saturated(0.6)) == after(d.saturated(0.6)).max()) == pytest.approx(0.4, abs=0.01)
    assert (v - after(d.rounded(1.0))).min() >= 0.0
    assert after(d.moved(2.0)) - v == pytest.approx(np.full(len(v), 2 * clean_values.std()))


def test_five_classes_are_as_frequent_as_the_truth_says():
    for name, make in classes.KINDS.items():
        x, y, p = make(np.random.default_rng(9), 10_000)
        assert x.shape == (10_000, 12), name
        assert p.sum(axis=1) == pytest.approx(np.ones(10_000))
        assert np.bincount(y, minlength=5) / 10_000 == pytest.approx(p.mean(axis=0), abs=0.02), name


def test_targets_are_spread_about_the_true_mean_as_said():
    for name, kind in numbers.KINDS.items():
        x, y, mean = kind.make(np.random.default_rng(10), 20_000)
        assert abs((y - mean).mean()) < 4 * (y - mean).std() / math.sqrt(20_000), name
    x, y, mean = numbers.clean(np.random.default_rng(11), 100_000)
    assert ((y - mean) / numbers.spread(x)).std() == pytest.approx(1.0, abs=0.02)


def test_quiet_streams_have_their_time_structure():
    z = quiet.autocorrelated(np.random.default_rng(12), 20_000)
    assert np.corrcoef(z[1:, 0], z[:-1, 0])[0, 1] == pytest.approx(0.9, abs=0.02)
    assert z.std() == pytest.approx(1.0, abs=0.03)
    wave = quiet.oscillating(np.random.default_rng(13), 2 * quiet.PERIOD)[:, 1]
    halves = wave.reshape(4, -1).mean(axis=1)
    assert np.abs(halves - halves[[2, 3, 0, 1]]).max() < 0.2, "the same one period later"
    regimes = quiet.in_regimes(np.random.default_rng(14), 60_000)
    assert regimes.mean(axis=0)[15] == pytest.approx(0.0, abs=0.03)


def test_rules_of_models_that_learn_change_in_the_middle_or_never():
    for change, (before, after) in CHANGES.items():
        assert (before == after) == (change == "none")
        x, y = stream(change, 1)
        for rows, w in ((slice(None, AT), before), (slice(AT, None), after)):
            assert np.mean((x[rows] @ np.array(w) > 0) == y[rows]) > 0.8


# ---------------------------------------------------------------- what was told


def test_a_monitor_that_is_fed_tells_flipped_labels_and_nothing_before():
    rng = np.random.default_rng(15)
    q = rng.beta(1, 1, size=16_000)
    y = (rng.random(16_000) < np.where(np.arange(16_000) < 14_000, q, 1 - q)).astype(int)
    told = feed(LossMonitor(learns=False), nothing(16_000), y.tolist(), of_two(q))
    assert not told.before(14_000)
    assert told.after(14_000)[0].first == "worse"


def test_shifts_are_split_by_when_they_were_told():
    told = Told([Shift(5, "worse", "level", "loss", (3, 2, 4)), Shift(9, "level", "level", "level", (8, 7, 9))])
    assert [s.observation for s in told.before(5)] == [5]
    assert [s.observation for s in told.after(5)] == [9]
    assert summed([]) == Told()


def test_rows_and_predictions_are_handed_over_as_a_stream_has_them():
    assert list(mappings(("a", "b"), np.array([[1.0, 2.0]]))) == [{"a": 1.0, "b": 2.0}]
    assert list(of_two(np.array([0.25]))) == [{0: 0.75, 1: 0.25}]
    assert list(of_many(np.array([[0.5, 0.5]]))) == [{0: 0.5, 1: 0.5}]


def trial(kind: str, *shifts: Shift, regret: float = 0.0) -> Trial:
    return Trial("linear", kind, 0, shifts, CHANGE_AT, Figures(0.02, 0.1, regret, 0.3))


def test_the_last_word_counts_and_the_first_one_is_timed():
    one = trial("x", Shift(CHANGE_AT + 7, "level", "worse", "loss", (0, 0, 0)))
    assert (one.told("worse"), one.told("level"), one.delay) == (True, False, 7)
    assert (trial("x").told("worse"), trial("x").delay) == (False, math.inf)
    assert (one.figures.harm, one.figures.worse) == (True, False)
    (line,) = by_kind([one])
    assert "first level 1, last worse 1" in line


# ---------------------------------------------------------------- the command and the page


def test_the_page_has_the_results():
    results = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text, page.tables(results)) == text, "python -m benchmarks.harm page --full"
    assert [row["kind"] for row in results["many"]] == list(classes.KINDS)
    assert [row["kind"] for row in results["numbers"]] == list(numbers.KINDS)
    assert list(dict.fromkeys(row["kind"] for row in results["two"])) == list(KINDS)


def test_summaries_count_the_last_words_of_first_shifts():
    told = trial("a", Shift(CHANGE_AT + 40, "level", "worse", "loss", (0, 0, 0)), regret=0.0123)
    (row,) = page.summaries([told, trial("a", regret=0.0123)])
    assert row == {
        "model": "linear",
        "kind": "a",
        "auc": -0.02,
        "loss": 0.1,
        "regret": 0.012,
        "told": {"worse": 1, "nothing": 1},
        "rows": 40,
    }


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (10.67, "+10.670"), (-0.105, "−.105"), (0.005, "+.005")])
def test_figures_of_the_page_have_a_sign_and_no_zero_before_the_point(value, text):
    row = {"model": "m", "kind": "k", "auc": 0.0, "loss": value, "regret": 0.0, "told": {"worse": 1}, "rows": 7}
    (shown,) = page.tables({"two": [], "many": [row], "numbers": [], "first": [], "quiet": []})[1].rows
    assert shown == ("k", text, "0", "worse", "7")


def test_tasks_come_back_in_their_order():
    with workers(1) as of:
        assert of(pow, [(2, 3), (3, 2)]) == [8, 9]


def test_the_command_takes_rows_and_refuses_others(capsys):
    assert parse([]).rows == list(ROWS)
    with pytest.raises(SystemExit):
        main(["--rows", "none"])
    with pytest.raises(SystemExit):
        main(["--processes", "0"])
    assert "must be at least 1" in capsys.readouterr().err

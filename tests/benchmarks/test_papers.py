"""The papers' benchmark: its bands, streams and two-pass evaluation are right, and every row runs on a tiny set-up."""

from __future__ import annotations

import csv
import gzip
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.data import numbers
from benchmarks.papers import change
from benchmarks.papers.__main__ import main
from benchmarks.papers.ipfi import approximation as ipfi
from benchmarks.papers.ipfi import cost as ipfi_cost
from benchmarks.papers.ipfi import drift as ipfi_drift
from benchmarks.papers.isage import elec2, removal, sensors, static
from benchmarks.papers.isage import switching as isage
from benchmarks.papers.isage.sensors import OnlineAutoencoder
from benchmarks.papers.registry import ROWS, Task, execute, select
from benchmarks.papers.rows import Band, Quantity, Settings, judge
from benchmarks.papers.static import Shared, compute_static, explain_static
from benchmarks.papers.streams import agrawal, agrawal_label, gradual_drift, stagger_one_hot, swap_features, switching
from threadpoolctl import threadpool_limits

from attributary_explainers import IncrementalPFI, batch_pfi

# ---------------------------------------------------------------- bands and verdicts


def test_a_band_shrinks_around_its_centre_with_the_root_of_the_runs():
    assert Band(1.0, 3.0).of(1) == (1.0, 3.0)
    assert Band(1.0, 3.0).of(4) == (1.5, 2.5)


def test_a_limit_holds_for_any_number_of_runs():
    assert Band.limit(1.0, 3.0).of(100) == (1.0, 3.0)
    assert Band.limit(3.0).of(9) == (3.0, math.inf)


@pytest.mark.parametrize(
    ("values", "statistic", "verdict", "judged"),
    [
        ([1.9, 2.1, 2.0, 2.0], "mean", "within", 2.0),
        ([2.9, 2.9, 2.9, 2.9], "mean", "outside", 2.9),  # within the band of one run, not of the mean of four
        ([0.0, 2.0, 100.0, 2.0], "median", "within", 2.0),
        ([2.0, 2.0, 2.6, 2.0], "every", "outside", 2.6),
        ([2.0, math.nan, 2.0, 2.0], "median", "outside", None),
        ([], "mean", "outside", None),
    ],
)
def test_a_verdict_holds_the_statistic_against_the_band(values, statistic, verdict, judged):
    outcome = judge("row", Quantity("q", band=Band(1.0, 3.0), statistic=statistic), values)
    assert (outcome.verdict, outcome.is_miss) == (verdict, verdict == "outside")
    if judged is not None:
        assert outcome.judged == pytest.approx(judged)


def test_without_a_band_a_figure_is_only_shown():
    outcome = judge("row", Quantity("q"), [5.0, 7.0])
    assert (outcome.verdict, outcome.is_miss, outcome.mean, outcome.n) == ("shown", False, 6.0, 2)


def test_seeds_differ_by_row_and_run_and_repeat():
    seeds = [row.seed(1, index) for row in ROWS for index in range(5)]
    assert len(set(seeds)) == len(seeds)
    assert seeds == [row.seed(1, index) for row in ROWS for index in range(5)]
    assert ROWS[0].seed(2, 0) != ROWS[0].seed(1, 0)


# ---------------------------------------------------------------- streams


def constant(value):
    while True:
        yield {}, value


def test_gradual_drift_has_the_probability_of_the_paper():
    n_runs, n, position, width = 300, 200, 100, 50
    share = np.zeros(n)
    for seed in range(n_runs):
        stream = gradual_drift(constant(0), constant(1), position=position, width=width, n=n, seed=seed)
        share += [y for _, y in stream]
    share /= n_runs
    expected = 1 / (1 + np.exp(-4 * (np.arange(n) - position) / width))
    # Five standard errors: one of 200 binomials beyond it happens once in ten thousand times.
    assert (np.abs(share - expected) <= 5 * np.sqrt(expected * (1 - expected) / n_runs) + 1e-3).all()


def test_gradual_drift_far_from_the_position_does_not_overflow():
    stream = gradual_drift(agrawal(1, 1), agrawal(2, 2), position=10**6, width=1, n=5, seed=1)
    assert [x for x, _ in stream] == [x for x, _ in (next(s) for s in [agrawal(1, 1)] for _ in range(5))]


def test_swapped_features_have_each_others_values_from_then_on():
    stream = [({"a": t, "b": -t, "c": 7}, t) for t in range(4)]
    found = list(swap_features(stream, "a", "b", after=2))
    assert [x["a"] for x, _ in found] == [0, 1, -2, -3]
    assert [x["b"] for x, _ in found] == [0, -1, 2, 3]
    assert [x["c"] for x, _ in found] == [7] * 4
    assert stream[3][0]["a"] == 3  # the input is unchanged


def test_switching_changes_the_stream_with_the_probability_to_any_other():
    concepts = [
        c for c, _, y in switching([constant(i) for i in range(3)], probability=0.2, n=20_000, seed=3) if c == y
    ]
    assert len(concepts) == 20_000
    changes = [(a, b) for a, b in pairwise(concepts) if a != b]
    assert len(changes) == pytest.approx(4000, abs=5 * math.sqrt(20_000 * 0.2 * 0.8))
    assert dict.fromkeys(changes, True).keys() == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_the_true_function_is_rivers():
    stream = agrawal(1, 5)
    assert all(agrawal_label(x) == y for x, y in (next(stream) for _ in range(500)))


def test_one_hot_columns_of_a_feature_sum_to_one():
    stream = stagger_one_hot(0, 1)
    for _ in range(50):
        x, _ = next(stream)
        assert [sum(x[name] for name in names) for names in change.STAGGER.values()] == [1, 1, 1]


def write_data(folder: Path, name: str, rows: list[list[object]]) -> None:
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows(rows)


def test_text_columns_are_coded_by_sorted_value(tmp_path):
    write_data(tmp_path, "t", [["a", "b", "y"], [1.5, "red", "no"], [2, "blue", "yes"]])
    assert numbers("t", tmp_path, target="yes") == [({"a": 1.5, "b": 1.0}, 0), ({"a": 2.0, "b": 0.0}, 1)]


# ---------------------------------------------------------------- two passes


def linear(rows):
    return (rows @ [2.0, -1.0]).tolist()


def observations(n=60, seed=1):
    rng = np.random.default_rng(seed)
    return [({"a": a, "b": b}, 2 * a) for a, b in rng.normal(size=(n, 2)).tolist()]


def test_two_passes_give_what_asking_the_model_gives():
    def make(model):
        return IncrementalPFI(model, loss="squared", alpha=0.05, n_samples=3, seed=4)

    direct, found = make(lambda x: 2.0 * x["a"] - x["b"]), []
    for explainer in explain_static(make, linear, observations(), names=("a", "b"), answer=0.0, chunk=7):
        found.append(explainer.importance)
    expected = [direct.explain_one(x, y) for x, y in observations()]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_two_passes_compute_batch_pfi():
    data = observations()
    found = compute_static(
        lambda model: batch_pfi(model, data, loss="squared", seed=1), linear, names=("a", "b"), answer=0.0
    )
    expected = batch_pfi(lambda x: 2.0 * x["a"] - x["b"], data, loss="squared", seed=1)
    assert found.importance == pytest.approx(expected.importance, abs=1e-12)


def test_two_passes_refuse_rows_that_depend_on_the_answers():
    class Curious:
        def __init__(self, model):
            self.model, self.last = model, 0.0

        def explain_one(self, x, y=None):
            self.last = self.model.predict_many([{"a": self.last, "b": 0.0}])[0]
            return {}

    with pytest.raises(RuntimeError, match="ask the model itself"):
        list(explain_static(Curious, linear, [({"a": 1.0, "b": 1.0}, 0)] * 3, names=("a", "b"), answer=5.0))


def test_errors_of_shares():
    assert ipfi.error({"a": 2.0, "b": 2.0}, {"a": 1.0, "b": 3.0}) == pytest.approx(0.5)
    assert static.distance({"a": 2.0, "b": -1.0}, {"a": 3.0, "b": -1.0}) == pytest.approx(0.25)


# ---------------------------------------------------------------- autoencoder


def test_the_autoencoders_gradient_is_that_of_its_error():
    rng = np.random.default_rng(2)
    names = ("a", "b", "c", "d")
    data = rng.normal(size=(30, 4))
    model = OnlineAutoencoder(names, hidden=3, latent=2, rate=0.0, seed=1)
    for row in data.tolist():
        model.learn_one(dict(zip(names, row, strict=True)))
    x = dict(zip(names, [0.3, -1.0, 2.0, 0.5], strict=True))
    model.learn_one(x)  # the scaling has seen it, and does not change below
    reading = np.array([list(x.values())])

    def score():
        return float(model.score_many(reading)[0])

    gradients, step = [], 1e-6
    for weights in model._weights:
        gradient = np.zeros_like(weights)
        for index in np.ndindex(*weights.shape):
            kept = weights[index]
            weights[index] = kept + step
            above = score()
            weights[index] = kept - step
            gradient[index] = (above - score()) / (2 * step)
            weights[index] = kept
        gradients.append(gradient)
    before = [weights.copy() for weights in model._weights]
    model.rate, n, mean, squares = 1.0, model._n, model._mean.copy(), model._squares.copy()
    model._n, model._mean, model._squares = n - 1, mean - (reading[0] - mean) / (n - 1), squares
    # Taking x in again from the state before it leads to the same mean; the spread is set so that it does, too.
    back = reading[0] - model._mean
    model._squares = squares - back * (reading[0] - mean)
    model.learn_one(x)
    for weights, old, gradient in zip(model._weights, before, gradients, strict=True):
        np.testing.assert_allclose(old - weights, gradient, atol=1e-6)


def test_faulty_readings_are_off_from_their_time_on():
    pressures, faulty = sensors.readings(1, n=1000, faults=(300, 700))
    healthy, _ = sensors.readings(1, n=1000, faults=())
    off = pressures - healthy
    assert (off[:300] == 0).all()
    assert (off[300:, faulty[0]] > 0).all()
    assert set(np.flatnonzero(off.any(axis=0)).tolist()) == set(faulty)


# ---------------------------------------------------------------- rows, tiny


def check(row_name, run) -> None:
    """The run reports every quantity that its row has, all of them finite."""
    (row,) = select([row_name])
    missing = [quantity.name for quantity in row.quantities if quantity.name not in run.values]
    assert not missing


def test_change_table_1():
    run = change.stagger("perceptron", 1)
    check("change-1-perceptron", run)
    assert run == change.stagger("perceptron", 1)  # a pure function of its seed
    assert run.values["|shape| before or after"] == 0.0


def test_change_table_2_without_an_explanation():
    run = change.agrawal_change(1, n=150, position=100, window=40)
    assert run.values["explanations"] == 0.0
    assert "discrepancy" not in run.values
    (row,) = select(["change-2"])
    assert judge(row.name, row.quantities[0], []).is_miss


def test_the_true_function_ignores_all_other_features():
    run = ipfi.true_function(1, n=600)
    check("ipfi-true-function", run)
    assert run.values["largest |other|"] == 0.0


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(1)
    names = ["date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    rows = [[*rng.random(8).round(3).tolist(), "UP"] for _ in range(1300)]
    for number, row in enumerate(rows):
        row[5] = 0.5 if number < 600 else row[5]
        row[8] = "UP" if row[3] > 0.5 else "DOWN"
    write_data(tmp_path, "elec2", [[*names, "class"], *rows])
    write_data(
        tmp_path,
        "bank_marketing",
        [["a", "job", "y"], *([i % 7, f"j{i % 3}", ("no", "yes")[i % 2]] for i in range(200))],
    )
    write_data(tmp_path, "bike_sharing", [["a", "b", "cnt"], *([i % 7, i % 5, 2.0 * (i % 7)] for i in range(300))])
    return Settings(tmp_path)


def test_a_row_of_swapped_features_runs(data, monkeypatch):
    monkeypatch.setattr(ipfi_drift, "INTERVAL", 300)
    check("ipfi-drift", ipfi_drift.swapped(1, data, n=1200, n_models=1, n_draws=1, drift=600))


def test_a_row_of_costs_has_its_quantities(data):
    assert {q.name.split(",")[0] for q in select(["ipfi-cost"])[0].quantities} >= {
        name.split(",")[0] for name in ipfi_cost.cost(1, data, n=60, n_models=1).values
    }


def test_a_row_of_approximations_has_its_quantities():
    run = isage.approximation(1, 0.05, n=60, n_train=150, n_truth=20, windows=(20, 40))
    assert {name.replace("w 20", "w 500").replace("w 40", "w 1000") for name in run.values} >= {
        quantity.name for quantity in select(["isage-2-high"])[0].quantities
    }


def test_the_second_explainer_is_given_the_first_ones_predictions():
    asked = []

    def predict_many(rows):
        asked.extend(rows)
        return [row["a"] for row in rows]

    shared = Shared(predict_many)
    assert shared.first([{"a": 1.0}]) == shared.again([{"a": 1.0}]) == [1.0]
    assert asked == [{"a": 1.0}]
    shared.first([{"a": 1.0}])
    with pytest.raises(RuntimeError, match="different rows"):
        shared.again([{"a": 2.0}])


def test_a_row_of_removals_runs_and_marginal_removal_agrees_about_half_the_time():
    # scikit-learn's threads wait for each other once per tree, which takes long where processors are busy.
    with threadpool_limits(1):
        run = removal.removal(1, n=100, n_train=300, n_samples=2)
    check("isage-removal", run)
    assert 0.3 < run.values["agreement, marginal"] < 0.7


def test_importances_of_a_row_sum_to_what_they_should():
    run = removal.efficiency(1, n=60)
    check("isage-efficiency", run)
    assert max(run.values.values()) < 1e-9


def test_a_static_row_runs_on_a_small_table(data):
    run = static.static("bike", 1, data, n=200, n_batch=60)
    check("isage-static-bike", run)


def test_a_constant_feature_of_elec2_has_no_importance(data):
    run = elec2.electricity(1, data, n=900, n_models=1, n_samples=1, change=600)
    check("isage-elec2", run)
    assert run.values["iPFI vicprice, largest before"] == run.values["iPFI vicprice, |mean before| / mean after"] == 0.0


def test_a_faulty_sensor_ranks_first_at_once():
    # One fault, far larger than anything before it: the faulty sensor ranks first at once.
    run = sensors.fault_detection(1, n=1000, faults=(500, 700), n_samples=1, warm_up=100)
    check("isage-sensors", run)
    assert run.values["steps until fault 1 ranks first"] < sensors.WITHIN


# ---------------------------------------------------------------- the command


def test_absent_data_and_failures_are_answers(tmp_path):
    done = execute(Task("isage-static-adult", 0, 1, Settings(tmp_path)))
    assert done.missing == tmp_path / "adult.csv.gz"
    failed = execute(Task("isage-efficiency", 0, -1, Settings(tmp_path)))  # no generator takes a negative seed
    assert "Error" in failed.error
    assert failed.run is None


@pytest.mark.long
def test_runs_repeat_in_processes_of_their_own(tmp_path):
    for jobs in ("1", "2"):
        arguments = ["--only", "change-1-perceptron", "--runs", "2", "--jobs", jobs, "--out", str(tmp_path / jobs)]
        assert main(arguments) in (0, 1)  # two runs need not be within the band: it is not what is tested
    for name in ("results.csv", "runs.csv"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert len((tmp_path / "1" / "runs.csv").read_text().splitlines()) > 10


def test_the_command_writes_table_and_results(tmp_path, capsys):
    arguments = ["--only", "change-1-perceptron", "isage-static-adult", "--runs", "2", "--jobs", "1"]
    assert main([*arguments, "--out", str(tmp_path), "--data", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "no data" in shown.out
    assert "change-1-perceptron run 2" in shown.err
    with (tmp_path / "results.csv").open() as lines:
        results = {(row["row"], row["quantity"]): row for row in csv.DictReader(lines)}
    accuracy = results["change-1-perceptron", "accuracy"]
    assert (accuracy["paper"], accuracy["n_runs"], accuracy["verdict"]) == (".984", "2", "shown")
    assert results["isage-static-adult", "NDCG, alpha 0.001"]["verdict"].startswith("no data: ")


def test_an_unknown_row_is_refused(capsys):
    assert main(["--only", "nothing"]) == 2
    assert "--list" in capsys.readouterr().err


def test_a_miss_is_the_exit_code(tmp_path, monkeypatch):
    quantity = Quantity("discrepancy", band=Band.limit(2.0))
    (row,) = select(["change-1-perceptron"])
    monkeypatch.setattr("benchmarks.papers.__main__.select", lambda _: (replace(row, quantities=(quantity,)),))
    assert main(["--runs", "1", "--jobs", "1", "--out", str(tmp_path)]) == 1

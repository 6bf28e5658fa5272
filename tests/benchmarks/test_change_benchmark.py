"""The benchmark of change explanation: streams drift as they claim, runs are counted right, the page has results."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from benchmarks.change import pool
from benchmarks.change.__main__ import FULL, RESULTS, main
from benchmarks.change.counting import poisson, quantile, summarise, wilson
from benchmarks.change.report import number, pooled_rate, tables
from benchmarks.change.runner import Declared, Record, follow, run
from benchmarks.change.settings import (
    GRID_SETTINGS,
    ROUTE_SETTINGS,
    SETTINGS,
    Setting,
    by_route,
    is_grid,
    is_route,
    settings_of_run,
)
from benchmarks.change.shared import SharedModel
from benchmarks.change.streams import (
    LABEL_NOISE,
    STREAMS,
    STREAMS_BY_NAME,
    Drift,
    angle,
    hyperplane_label,
    mixture,
    turning_hyperplane,
)
from benchmarks.papers.streams import agrawal_label, stagger_one_hot
from benchmarks.tables import as_markdown

from attributary_explainers import Alarm, ChangeEvent, ChangeExplainer, NotConfirmed, PaperChangeExplainer
from tests.explainers.changes import change_of, explanation_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "explainers" / "choosing.md"

# ---------------------------------------------------------------- streams


def test_progress_is_0_before_the_drift_1_after_it_and_linear_between():
    drift = Drift(100, 40)
    assert [drift.progress(t) for t in (0, 99, 100, 110, 120, 139, 140, 1000)] == [0, 0, 0, 0.25, 0.5, 39 / 40, 1, 1]
    assert [Drift(100).progress(t) for t in (99, 100)] == [0.0, 1.0], "a sudden one is complete at once"


def test_a_mixture_takes_only_the_old_concept_before_and_only_the_new_after():
    drawn = list(mixture(iter(lambda: "old", None), iter(lambda: "new", None), Drift(1000, 2000), 4000, seed=3))
    assert set(drawn[:1001]) == {"old"}
    assert set(drawn[3000:]) == {"new"}
    share = np.array([concept == "new" for concept in drawn[1000:3000]]).reshape(4, 500).mean(axis=1)
    assert share == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8], abs=4 * math.sqrt(0.25 / 500))


def test_stagger_is_concept_0_before_the_drift_and_2_after():
    observations = list(STREAMS_BY_NAME["stagger-gradual"].observations(7))
    old = [bool(x["size_0"] and x["color_0"]) for x, _ in observations]
    new = [bool(x["size_1"] or x["size_2"]) for x, _ in observations]
    assert [bool(y) for _, y in observations[:3001]] == old[:3001]
    assert [bool(y) for _, y in observations[5000:]] == new[5000:]
    assert old[:3001] != new[:3001]


def test_the_concepts_of_stagger_are_right():
    # The exact distance of the two concepts, by enumeration: 8/9 of all objects, less those that both call positive.
    rows = [(size, color, shape) for size in range(3) for color in range(3) for shape in range(3)]
    differ = np.mean([(size == 0 and color == 0) != (size > 0) for size, color, _ in rows])
    observations = list(islice(STREAMS_BY_NAME["stagger-sudden"].observations(0), 3000, 6000))
    labels = np.mean([bool(x["size_0"] and x["color_0"]) != bool(y) for x, y in observations])
    assert differ == 7 / 9
    assert labels == pytest.approx(differ, abs=4 * math.sqrt(differ * (1 - differ) / 3000))


def test_agrawal_is_function_1_before_the_drift():
    # Perturbation moves x, not y: most labels are those of the function at the x that is seen, and after the drift not.
    observations = list(STREAMS_BY_NAME["agrawal-sudden"].observations(1))
    right = np.array([agrawal_label(x) == y for x, y in observations])
    assert right[:3000].mean() > 0.85
    assert right[3000:].mean() < 0.65


def test_the_hyperplane_turns_through_a_right_angle_and_then_stays():
    assert [angle(Drift(10, 20).progress(t)) for t in (9, 20, 30, 99)] == [0.0, math.pi / 4, math.pi / 2, math.pi / 2]


@pytest.mark.parametrize("turned", [0.2, math.pi / 4, math.pi / 2])
def test_two_hyperplanes_differ_in_the_share_of_their_angle(turned: float):
    rows = [x for x, _ in turning_hyperplane(Drift(0), 20_000, 5)]
    differ = np.mean([hyperplane_label(x, 0.0) != hyperplane_label(x, turned) for x in rows])
    exact = turned / math.pi
    assert differ == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_the_turning_hyperplane_labels_by_its_angle_but_for_the_noise():
    drift = Drift(2000, 6000)
    drawn = enumerate(turning_hyperplane(drift, 9000, 2))
    noise = [y != hyperplane_label(x, angle(drift.progress(t))) for t, (x, y) in drawn]
    for part in np.array(noise).reshape(3, 3000):
        assert part.mean() == pytest.approx(LABEL_NOISE, abs=4 * math.sqrt(0.05 * 0.95 / 3000))


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_streams_are_as_long_as_they_say_repeat_and_leave_a_horizon(stream):
    first, again = (list(islice(stream.observations(11), 50)) for _ in range(2))
    assert first == again != list(islice(stream.observations(12), 50))
    assert stream.drift is None or stream.drift.start + stream.drift.length + 1000 <= stream.n
    if stream.name.startswith("hyperplane"):  # quick to draw
        assert sum(1 for _ in stream.observations(0)) == stream.n


def test_a_stationary_hyperplane_does_not_turn():
    stream = STREAMS_BY_NAME["hyperplane-stationary"]
    wrong = np.mean([y != hyperplane_label(x, 0.0) for x, y in stream.observations(0)])
    assert wrong == pytest.approx(LABEL_NOISE, abs=4 * math.sqrt(0.05 * 0.95 / stream.n))


# ---------------------------------------------------------------- one model for many explainers


@pytest.mark.long
def test_explainers_of_a_shared_model_declare_what_they_would_alone():
    stream = STREAMS_BY_NAME["hyperplane-sudden"]
    settings = [by_route("both", window=100), by_route("discrepancy", window=100, threshold=0.1)]
    together = run(stream, 1, settings)
    for setting in settings:
        model = stream.model(10)
        explainer, alone = setting.make(model, 10), []
        for n, (x, y) in enumerate(stream.observations(10), start=1):
            y_pred = model.predict_proba_one(x)
            model.learn_one(x, y)
            for found in (*explainer.update(x, y, y_pred), *explainer.finish()):
                if getattr(found, "is_drift", False):
                    alone.append((found.n_detected, n, found.route, found.discrepancy))
        assert alone
        assert [(e.n_detected, e.n, e.route, e.discrepancy) for e in together[setting.name].explained] == alone
        assert len(together[setting.name].rejected) == explainer.n_not_confirmed


def test_a_frozen_state_does_not_learn():
    shared, rows = (
        SharedModel(STREAMS_BY_NAME["stagger-sudden"].model(1)),
        [x for x, _ in islice(stagger_one_hot(0, 9), 200)],
    )
    for x, y in islice(stagger_one_hot(0, 1), 500):
        shared.learn_one(x, y)
    state = shared.frozen()
    labels = [state.predict_one(x) for x in rows]
    assert labels == [shared.predict_one(x) for x in rows]
    assert shared.frozen() is state
    for x, y in islice(stagger_one_hot(2, 2), 500):
        shared.learn_one(x, y)
    assert shared.frozen() is not state
    assert [state.predict_one(x) for x in rows] == labels
    now = [shared.predict_one(x) for x in rows]
    assert np.mean([a != b for a, b in zip(labels, now, strict=True)]) == pytest.approx(7 / 9, abs=0.12)


# ---------------------------------------------------------------- counting


class _Scripted:
    """An explainer that alarms, dismisses and explains at given observations."""

    def __init__(self, alarms, rejected, explained):
        self._alarms, self._rejected, self._explained = alarms, rejected, explained
        self._n = 0

    def update(self, x, y, y_pred):
        self._n += 1
        made = explanation_of(change_of({}, {}), discrepancy=0.5)
        common = {f.name: getattr(made, f.name) for f in fields(ChangeEvent)}
        events = []
        if self._n in self._alarms:
            events.append(Alarm(**{**common, "n_observations": self._n}, due=self._n + 10))
        if self._n in self._rejected:
            events.append(NotConfirmed(**common, closes=self._rejected[self._n], found="equal"))
        if self._n in self._explained:
            events.append(replace(made, n_detected=self._explained[self._n]))
        return tuple(events)


class _Constant:
    """A model that learns nothing."""

    def learn_one(self, x, y):
        pass

    def predict_proba_one(self, x):
        return {0: 1.0}


def test_follow_records_what_an_explainer_did():
    shared = SharedModel(_Constant())
    scripted = _Scripted(alarms={10, 20, 30}, rejected={14: 10}, explained={24: 21, 34: 30})
    record = follow(shared, [({"a": float(i)}, 0) for i in range(40)], {"scripted": scripted})["scripted"]
    assert record.alarms == [10, 20, 30]
    assert record.rejected == [10]
    assert record.explained == [Declared(21, 24, "detector", 0.5), Declared(30, 34, "detector", 0.5)]


def _explained(*pairs: tuple[int, int]) -> list[Declared]:
    return [Declared(detected, n, "discrepancy", 0.5) for detected, n in pairs]


def test_a_drift_cell_counts_delays_and_misses():
    stream = STREAMS_BY_NAME["stagger-sudden"]
    records = [
        Record(explained=_explained((3020, 3319))),
        Record(explained=_explained((500, 799), (2990, 3289), (3400, 3700)), rejected=[100, 3100]),
        Record(explained=_explained((3100, 3399))),
        Record(explained=_explained((900, 1000)), rejected=[3050]),
    ]
    cell = summarise(stream, Setting("both"), records)
    assert (cell["runs"], cell["found"], cell["share"]) == (4, 3, 0.75)
    assert (cell["low"], cell["high"]) == pytest.approx(wilson(3, 4), abs=1e-4)
    assert cell["alarm"] == {"median": 20.0, "q90": None}  # 0 (raised before), 20, 100, missed
    assert cell["explanation"] == {"median": 319.0, "q90": None}  # 289, 319, 399, missed
    assert cell["explained_before"] == 2
    assert cell["explained_after"] == 1.0
    assert cell["rejected_after"] == 0.5
    assert cell["by_discrepancy"] == 3


def test_a_stationary_cell_counts_the_start_apart():
    stream, setting = STREAMS_BY_NAME["stagger-stationary"], Setting("both", window=300, threshold=0.3)
    records = [
        Record(alarms=[500, 900, 901, 5000], rejected=[901], explained=_explained((900, 1200), (5000, 5300))),
        Record(alarms=[7000], explained=_explained((7000, 7300))),
    ]
    cell = summarise(stream, setting, records)
    assert cell["observations"] == 2 * (10_000 - 900)
    counted = {name: cell[name]["n"] for name in ("alarms", "rejected", "explained")}
    assert counted == {"alarms": 3, "rejected": 1, "explained": 2}
    assert cell["start"] == {"alarms": 2, "explained": 1}
    assert cell["alarms"]["rate"] == pytest.approx(3 * 100_000 / 18_200, abs=1e-4)
    assert cell["runs_with_explanation"]["n"] == 2


def test_pooled_rates_weigh_streams_by_their_observations():
    setting = by_route("both")
    cells = {
        name: {setting.name: {"observations": n, "explained": {"n": k}}}
        for name, n, k in (("stagger", 1000, 1), ("agrawal", 3000, 2), ("hyperplane", 6000, 0))
    }
    results = {"grid": {f"{name}-stationary": cell for name, cell in cells.items()}}
    assert pooled_rate(results, setting, "explained")[0] == pytest.approx(3 * 100_000 / 10_000)


def test_every_setting_runs_with_seed_0_and_the_routes_with_every_seed():
    assert settings_of_run(0) == SETTINGS
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    assert all(set(ROUTE_SETTINGS) <= set(settings_of_run(index)) for index in range(21))
    assert {s.detector for s in SETTINGS} >= {"adwin", "page_hinkley", "hddm_a", "hddm_w", "kswin", None}


# ---------------------------------------------------------------- intervals


def test_poisson_intervals_have_their_closed_forms():
    assert poisson(0) == pytest.approx((0.0, -math.log(0.025)))
    assert poisson(1)[0] == pytest.approx(-math.log(0.975))
    # One or fewer events have the probability (1 + mean) exp(-mean).
    high = poisson(1)[1]
    assert (1 + high) * math.exp(-high) == pytest.approx(0.025)


def test_poisson_intervals_of_large_counts_are_nearly_normal():
    low, high = poisson(10_000)
    assert (low, high) == pytest.approx((10_000 - 196, 10_000 + 196), abs=3)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 4), (50, 100), (10, 10)])
def test_wilson_ends_where_the_share_is_z_standard_errors_away(k: int, n: int):
    z = 1.959963984540054
    for end in wilson(k, n):
        if 0.0 < end < 1.0:
            assert abs(k / n - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n))
    assert wilson(0, n)[0] == 0.0
    assert wilson(n, n) == pytest.approx((n / (n + z * z), 1.0))


def test_quantiles_count_what_was_missed():
    assert quantile([5.0, 1.0, math.inf, 3.0], 0.5) == 3.0
    assert quantile([5.0, 1.0, math.inf, 3.0], 0.9) == math.inf
    assert quantile(range(1, 101), 0.9) == 90


# ---------------------------------------------------------------- results and page


@pytest.fixture(scope="module")
def results():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.mark.long
def test_a_run_of_today_gives_the_recorded_values(results):
    for name in ("hyperplane-sudden", "stagger-sudden"):
        records = run(STREAMS_BY_NAME[name], 0, ROUTE_SETTINGS)
        today = json.loads(json.dumps({setting: record.as_dict() for setting, record in records.items()}))
        assert today == results["first_run"][name], (
            f"recorded with {results['versions']}; after a change of the procedure: make change ARGS='--full --page'"
        )


def test_the_page_shows_the_results(results):
    page = PAGE.read_text(encoding="utf-8")
    for table in tables(results):
        assert as_markdown(table) in page, (
            f"{table.name}: make change ARGS='--read benchmarks/change/results.json --page'"
        )


def test_the_results_are_of_a_full_run(results):
    cells = results["cells"]
    assert results["runs"] == FULL
    assert set(cells) == {stream.name for stream in STREAMS}
    for stream in STREAMS:
        assert set(cells[stream.name]) == {setting.name for setting in ROUTE_SETTINGS}
        assert set(results["grid"][stream.name]) == {setting.name for setting in GRID_SETTINGS}
        of_routes = sum(is_route(index, stream.slow_model) for index in range(FULL))
        of_the_grid = sum(is_grid(index, stream.slow_model) for index in range(FULL))
        assert all(cell["runs"] == of_routes for cell in cells[stream.name].values())
        assert results["grid"][stream.name][Setting().name]["runs"] == of_the_grid


def test_the_command_shows_recorded_results(capsys):
    assert main(["--read", str(RESULTS), "--markdown"]) == 0
    printed = capsys.readouterr().out
    assert "| false drifts |" in printed


@pytest.mark.parametrize("arguments", [["--runs", "0"], ["--processes", "0"], ["--runs", "2", "--full"]])
def test_the_command_refuses_what_it_cannot_do(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert "--" in capsys.readouterr().err


@pytest.mark.long
def test_results_do_not_depend_on_the_order_in_which_runs_end(monkeypatch):
    stream = STREAMS_BY_NAME["hyperplane-sudden"]
    monkeypatch.setattr(pool, "STREAMS", (stream,))
    monkeypatch.setattr(pool, "GRID_SETTINGS", ())
    monkeypatch.setattr(pool, "run", lambda stream, index: run(stream, index, ROUTE_SETTINGS[2:3]))
    monkeypatch.setattr(pool, "ROUTE_SETTINGS", ROUTE_SETTINGS[2:3])
    forward = pool.results(2, 1, lambda done, total: None)
    in_order = pool.tasks
    monkeypatch.setattr(pool, "tasks", lambda n_runs: in_order(n_runs)[::-1])
    assert pool.results(2, 1, lambda done, total: None) == forward


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (0.0, "0"), (0.256, "0.26"), (3.14, "3.1"), (319.0, "319")])
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_settings_make_the_explainers_that_they_name():
    model = STREAMS_BY_NAME["hyperplane-sudden"].model(0)
    for setting in ROUTE_SETTINGS:
        explainer = setting.make(model, 0)
        assert (explainer.window, explainer.threshold) == (300, 0.3)
        assert isinstance(explainer, PaperChangeExplainer if setting.route == "paper" else ChangeExplainer)
        if setting.route == "paper":
            continue
        assert (explainer.detector_name is None) == (setting.route == "discrepancy")
        assert explainer.parameters["watch_discrepancy"] == (setting.route in ("discrepancy", "both"))


def test_the_grid_is_around_the_defaults():
    model = STREAMS_BY_NAME["hyperplane-sudden"].model(0)
    installed = ChangeExplainer(model, importances=(), seed=0)
    assert Setting().make(model, 0).parameters == installed.parameters
    assert Setting() in GRID_SETTINGS

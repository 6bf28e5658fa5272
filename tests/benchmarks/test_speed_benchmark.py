"""The benchmark of what explaining costs: loops do the same work, ratios are right, every mode runs in small."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.speed import accuracy
from benchmarks.speed import loops as speed_loops
from benchmarks.speed import others as speed_others
from benchmarks.speed.__main__ import CASES_BY_NAME, PAGE, RESULTS, main
from benchmarks.speed.accuracy import Case, WholePool, compared, estimate, exact_values
from benchmarks.speed.loops import (
    KINDS,
    Kind,
    Loop,
    Naive,
    Ours,
    Reference,
    Spread,
    cross_entropy,
    installed,
    ratio,
    squared,
    take_turns,
)
from benchmarks.speed.report import NOT_INSTALLED, fill, tables
from benchmarks.speed.subjects import SUBJECTS, SUBJECTS_BY_NAME, Subject
from benchmarks.speed.table import NAIVE, OURS, REFERENCE, Plan, difference, largest_difference, measure, present

TINY = Plan(learned=200, observations=4, block=2, checked=2)
LINEAR, TREE = SUBJECTS_BY_NAME["linear"], SUBJECTS_BY_NAME["tree"]
BOTH = Kind("both", pfi=2, sage=3)


def nothing(*_: Any) -> None:
    pass


# ---------------------------------------------------------------- subjects and loops


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_a_subject_s_stream_is_the_same_each_time_and_its_model_predicts_what_the_loss_reads(subject: Subject) -> None:
    first, again = (list(islice(subject.stream(), 60)) for _ in range(2))
    assert first == again
    model = subject.make()
    for x, y in first:
        model.learn_one(x, y)
    found = subject.predict(model)(first[-1][0])
    assert isinstance(found, float) if subject.loss == "squared" else math.isclose(sum(found.values()), 1.0)


def test_the_naive_loop_evaluates_as_many_rows_as_the_explainers_do_and_of_the_same_kind() -> None:
    x, stored = {"a": 1, "b": 1, "c": 1}, [({"a": 0, "b": 0, "c": 0}, 0)] * 4
    rows: list[dict[str, int]] = []
    naive = Naive(rows.append, BOTH, stored)
    naive.step(x, 0)
    kept = [sum(row.values()) for row in rows]
    assert len(rows) == naive.n_rows == BOTH.rows(3)
    # iPFI takes one of three away, iSAGE adds one at a time up to two; x itself is what the loop predicts anyway.
    assert sorted(kept) == sorted([2] * 2 * 3 + [1] * 3 + [2] * 3)

    calls = 0

    def counted(row: dict[str, int]) -> dict[int, float]:
        nonlocal calls
        calls += 1
        return {0: 0.5, 1: 0.5}

    ours = Ours(counted, "cross_entropy", BOTH)
    for row, _ in [*stored, (x, 0)]:
        calls = 0
        ours.step(row, 0)
    assert calls == 1 + BOTH.rows(3)


def test_copies_are_explainers_with_other_draws() -> None:
    predict = LINEAR.predict(model := LINEAR.make())
    ours = Ours(lambda x: predict(x), "cross_entropy", Kind("", pfi=1, copies=2))
    for x, y in islice(LINEAR.stream(), 30):
        ours.step(x, y)
        model.learn_one(x, y)
    first, second = ours.importance
    assert first.keys() == second.keys()
    assert first != second


# ---------------------------------------------------------------- turns and ratios


def test_loops_take_turns_at_being_first_and_ratios_are_of_the_same_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, order = 0.0, []
    monkeypatch.setattr(speed_loops, "time", SimpleNamespace(process_time=lambda: clock))

    def loop(name: str, seconds: float) -> Loop:
        def step(x: dict[str, Any], y: Any) -> str:
            nonlocal clock
            clock += seconds * (1 + y)  # observations differ, for both alike
            order.append(name)
            return name

        return Loop(SimpleNamespace(learn_one=nothing), step)

    loops = {"one": loop("one", 1.0), "three": loop("three", 3.0)}
    ticks: list[int] = []
    times = take_turns(loops, [({}, y) for y in range(5)], 2, lambda: ticks.append(1))
    assert order == ["one"] * 2 + ["three"] * 2 + ["three"] * 2 + ["one"] * 2 + ["one", "three"]
    assert times == {"one": [3.0, 7.0, 5.0], "three": [9.0, 21.0, 15.0]}
    assert ratio(times["three"], times["one"]) == Spread(3.0, 3.0, 3.0)
    assert len(ticks) == 3
    assert loops["one"].predictions == ["one"] * 5


def test_a_spread_is_the_median_with_quartiles() -> None:
    assert Spread.of([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(3.0, 2.0, 4.0)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0)


# ---------------------------------------------------------------- the table


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    return {subject.name: measure(subject, KINDS, TINY) for subject in (LINEAR, TREE, SUBJECTS_BY_NAME["knn"])}


@pytest.mark.parametrize("name", ["linear", "tree", "knn"])
def test_all_columns_predict_what_the_model_alone_does_and_ours_is_what_row_by_row_gives(
    measured: dict[str, dict[str, Any]], name: str
) -> None:
    found = measured[name]
    assert found["alone_us"] > 0
    for kind in KINDS:
        of_kind = found["kinds"][kind.name]
        assert of_kind["difference"] <= 1e-12
        assert of_kind["y_pred"][NAIVE] == 0.0
        assert of_kind["model"] == dict.fromkeys(present((OURS, NAIVE, REFERENCE)), 0.0)
        assert of_kind["y_pred"][OURS] <= 1e-12
        assert of_kind["evaluations"] == 1 + kind.rows(9)
        for column in present((OURS, NAIVE, REFERENCE)):
            one = of_kind[column]
            assert 0 < one["low"] <= one["median"] <= one["high"] < math.inf
        assert (REFERENCE in of_kind) == ("speed_up" in of_kind) == (installed() is not None)
        if installed():
            assert of_kind["y_pred"][REFERENCE] == 0.0


def test_a_reservoir_larger_than_the_warm_up_changes_nothing_in_what_is_learnt() -> None:
    found = measure(TREE, [replace(BOTH, reservoir=150)], replace(TINY, columns=(OURS, NAIVE)))
    assert found["kinds"]["both"]["y_pred"][NAIVE] == 0.0
    assert found["kinds"]["both"]["model"] == {OURS: 0.0, NAIVE: 0.0}
    assert found["kinds"]["both"]["difference"] <= 1e-12


def test_a_fast_path_that_were_wrong_would_show() -> None:
    class Wrong(Subject):
        def predict(self, model: Any) -> Any:
            def sharper(x: Any) -> Any:
                powers = {label: p**1.001 for label, p in model.predict_proba_one(x).items()}
                return {label: p / sum(powers.values()) for label, p in powers.items()}

            return sharper

    data = list(islice(TREE.stream(), 140))
    model = TREE.make()
    for x, y in data[:100]:
        model.learn_one(x, y)
    wrong = Wrong(**vars(TREE))
    assert difference(wrong, BOTH, model, data[100:120], data[120:]) > 1e-6
    assert difference(TREE, BOTH, model, data[100:120], data[120:]) <= 1e-12


def test_differences_of_predictions_are_of_all_labels() -> None:
    assert largest_difference([{1: 0.5}, 2.0], [{1: 0.5, 0: 0.25}, 1.5]) == 0.5
    assert largest_difference([{1: 0.5}], [{1: 0.5, 0: 0.25}]) == 0.25
    assert largest_difference([None], [{1: 0.5}]) is None


def test_a_target_is_met_where_both_kinds_are_within_it() -> None:
    def shown(pfi: float, sage: float) -> str:
        of_kinds = {"iPFI, M 10": pfi, "iSAGE, m 10": sage}
        kinds = {name: {OURS: dict.fromkeys(("median", "low", "high"), value)} for name, value in of_kinds.items()}
        of_subject = {"alone_us": 1.0, "kinds": {name: {**of, "evaluations": 1} for name, of in kinds.items()}}
        return tables({"speed": {"reference": None, "subjects": {"linear": of_subject}}})[0].rows[0][-1]

    assert LINEAR.targets == (1.6, 2.2)
    assert shown(1.5, 2.1) == "met"
    assert shown(1.7, 1.5) == shown(1.5, 2.3) == "missed"


# ---------------------------------------------------------------- iXAI


def test_its_explainers_are_made_filled_and_called_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Stub:
        def __init__(self, **arguments: Any) -> None:
            self.arguments, self.stored, self.explained, self.seen_samples = arguments, [], [], 0
            made.append(self)

        def update_storage(self, x: Any, y: Any) -> None:
            self.stored.append(x)

        def explain_one(self, x: Any, y: Any, update_storage: bool) -> None:
            self.explained.append((x, update_storage))

        @property
        def importance_values(self) -> Any:
            return {np.str_("a"): np.float64(1.0)}

    stubs = {"ixai": ModuleType("ixai"), "ixai.explainer": ModuleType("e"), "ixai.storage": ModuleType("s")}
    stubs["ixai"].__version__ = "0.0"
    stubs["ixai.explainer"].IncrementalPFI = stubs["ixai.explainer"].IncrementalSage = Stub
    stubs["ixai.storage"].GeometricReservoirStorage = lambda size: size
    for name, stub in stubs.items():
        monkeypatch.setitem(sys.modules, name, stub)
    stored = [({"a": i}, 0) for i in range(3)]
    found = Reference(len, "squared", replace(BOTH, reservoir=3), stored, static=True)
    found.step({"a": 9}, 1)
    assert [one.arguments["n_inner_samples"] for one in made] == [BOTH.pfi, BOTH.sage]
    for one in made:
        assert one.stored == [x for x, _ in stored]
        assert one.seen_samples == 3
        assert one.explained == [({"a": 9}, False)]
        assert one.arguments["model_function"] is len
        assert one.arguments["loss_function"] is squared
        assert one.arguments["feature_names"] == ["a"]
        assert one.arguments["storage"] == 3
        assert one.arguments["dynamic_setting"] is False
    assert found.importance == [{"a": 1.0}] * 2
    assert type(next(iter(found.importance[0]))) is str


def test_its_losses_are_ours() -> None:
    assert cross_entropy(1, {0: 0.75, 1: 0.25}) == -math.log(0.25)
    assert cross_entropy(2, {0: 1.0}) == -math.log(1e-15)
    assert squared(3.0, {"output": 1.0}) == 4.0


def test_without_it_the_column_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ixai.explainer", None)
    assert installed() is None
    assert main(["--only", "linear", "--observations", "1"]) == 0
    assert NOT_INSTALLED in capsys.readouterr().out


def test_observational_it_has_a_tree_for_each_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def note(**arguments: Any) -> Any:
        made.append(arguments)
        return SimpleNamespace(update_storage=lambda x, y: None)

    explainer = SimpleNamespace(IncrementalPFI=note, IncrementalSage=note)
    storage = SimpleNamespace(TreeStorage=lambda **arguments: arguments)
    imputer = SimpleNamespace(TreeImputer=lambda predict, **arguments: (predict, arguments))
    for name, stub in {"explainer": explainer, "storage": storage, "imputer": imputer}.items():
        monkeypatch.setitem(sys.modules, f"ixai.{name}", stub)
    monkeypatch.setitem(sys.modules, "ixai", ModuleType("ixai"))
    Reference(len, "squared", Kind("", sage=2), [({"a": 1, "b": "c"}, 0)], categories=["b", "other"])
    (arguments,) = made
    trees = {"cat_feature_names": ["b"], "num_feature_names": ["a"]}
    assert arguments["storage"] == trees
    assert arguments["imputer"] == (len, {"storage_object": trees, "use_storage": True})


# ---------------------------------------------------------------- others


def test_other_explainers_change_nothing_and_a_ratio_is_of_whole_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed_others, "PERIOD", 20)
    monkeypatch.setattr(speed_others, "STORED", 120)
    monkeypatch.setattr(speed_others, "LEARNED", 300)
    monkeypatch.setattr(speed_others, "OTHERS", [replace(one, subjects=("tree",)) for one in speed_others.OTHERS])
    found = speed_others.others(["tree", "linear"], 40, 10)
    assert set(found) == {"tree"}
    assert set(found["tree"]["explained"]) == {one.name for one in speed_others.OTHERS}
    for name, of_one in found["tree"]["explained"].items():
        assert set(of_one) == {OURS} | ({REFERENCE} if name == "observational" and installed() else set())
        for column in of_one.values():
            assert 0 < column["low"] <= column["median"] <= column["high"] < math.inf
            assert column["y_pred"] <= 1e-12
            assert column["model"] == 0.0
    assert speed_others._by_period([1.0, 2.0, 3.0, 4.0, 5.0], 10) == [3.0, 7.0]
    assert speed_others._by_period([1.0], 10) == [1.0]
    (table,) = tables({"others": {"reference": None, "others": found}})
    assert [row[0] for row in table.rows] == ["mean decrease in impurity", "partial dependence, nine features"]


# ---------------------------------------------------------------- accuracy


@pytest.mark.parametrize("kind", [Kind("iPFI", pfi=8), Kind("iSAGE", sage=8)], ids=lambda kind: kind.name)
@pytest.mark.parametrize("column", present((OURS, REFERENCE)))
def test_estimates_come_near_the_exact_values(kind: Kind, column: str) -> None:
    case = Case("small", Subject("small", "", lambda: small_stream(), LINEAR.make), kind, 12)
    model, pool = accuracy.prepared(case)
    exact = exact_values(case, model, pool)
    squares, seconds = estimate(case, column, model, pool, exact, (100, 1600), seed=1)
    largest = max(map(abs, exact.values()))
    assert squares[1] < (0.1 * largest) ** 2
    assert 0 < seconds[0] < seconds[1]


def test_exact_values_are_those_of_drawing_from_the_whole_pool() -> None:
    case = Case("small", Subject("small", "", lambda: small_stream(), LINEAR.make), Kind("iPFI", pfi=1), 5)
    model, pool = accuracy.prepared(case)

    def loss(x: dict[str, Any], y: Any) -> float:
        return cross_entropy(y, model.predict_proba_one(x))

    growth = [loss({**x, "age": drawn["age"]}, y) - loss(x, y) for x, y in pool for drawn, _ in pool]
    assert exact_values(case, model, pool)["age"] == pytest.approx(math.fsum(growth) / 25, abs=1e-12)


def test_the_time_of_an_estimate_is_all_that_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(accuracy, "time", SimpleNamespace(process_time=lambda: next(clock)))
    case = Case("small", Subject("small", "", lambda: small_stream(), LINEAR.make), Kind("iPFI", pfi=1), 5)
    model, pool = accuracy.prepared(case)
    exact = dict.fromkeys(("age", "salary", "loan"), 0.0)
    assert estimate(case, OURS, model, pool, exact, (2, 4, 5), seed=1)[1] == [1.0, 2.0, 3.0]


def small_stream() -> Any:
    for x, y in SUBJECTS_BY_NAME["arf10"].stream():
        yield {name: x[name] for name in ("age", "salary", "loan")}, y


def test_the_pool_stays_in_the_reservoir() -> None:
    reservoir, rng = WholePool(2), np.random.default_rng(1)
    assert [reservoir.update({"i": i}, rng) for i in range(5)] == [0, 1, None, None, None]
    assert [row["i"] for row in reservoir.rows] == [0, 1]


def test_errors_are_compared_at_equal_observations() -> None:
    ours = {"seconds": [3.0, 6.0], "error": [0.2, 0.1], "n": [1, 4]}  # two seconds to set up
    theirs = {"seconds": [10.0, 40.0], "error": [0.6, 0.3], "n": [1, 4]}
    found = compared({OURS: ours, REFERENCE: theirs})
    assert found["slope"] == pytest.approx({OURS: -0.5, REFERENCE: -0.5})
    assert found["factor"] == pytest.approx(90.0)  # nine times the variance, ten times the time
    assert found["each"] == pytest.approx({OURS: 1.0, REFERENCE: 10.0})
    assert "factor" not in compared({OURS: ours})


# ---------------------------------------------------------------- the command


def test_the_command_writes_and_reads_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "results.json"
    assert main(["--only", "linear", "--observations", "1", "--columns", OURS, "--json", str(path)]) == 0
    first = capsys.readouterr().out
    found = json.loads(path.read_text())["speed"]
    assert set(found["subjects"]) == {"linear"}
    assert found["river"]
    assert main(["--read", str(path)]) == 0
    assert capsys.readouterr().out == first
    assert "Hoeffding" not in first
    assert "≤ 1.6" in first


@pytest.mark.long
def test_the_command_runs_the_other_modes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.json"
    monkeypatch.setitem(CASES_BY_NAME, "pfi-agrawal-1", replace(CASES_BY_NAME["pfi-agrawal-1"], pool=6))
    small = ["--observations", "2", "--repeats", "1", "--largest", "1", "--columns", OURS, "--json", str(path)]
    assert main(["--growth", "trees", "--accuracy", "pfi-agrawal-1", "--only", "tree", *small]) == 0
    found = json.loads(path.read_text())
    assert set(found) == {"growth", "accuracy"}
    (at_one,) = found["growth"]["axes"]["trees"]
    assert at_one["size"] == 1
    case = found["accuracy"]["cases"]["pfi-agrawal-1"]
    assert case["columns"][OURS]["n"] == [2]
    assert all(map(math.isfinite, (*case["exact"].values(), *case["columns"][OURS]["error"])))
    assert "Error of importance" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [["--observations", "0"], ["--only", "none"], ["--growth", "none"]])
def test_the_command_refuses_what_it_does_not_know(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(wrong)
    assert wrong[0] in capsys.readouterr().err


def test_the_page_shows_the_results() -> None:
    page, found = PAGE.read_text(encoding="utf-8"), json.loads(RESULTS.read_text(encoding="utf-8"))
    assert fill(page, found) == page, "python -m benchmarks.speed --read benchmarks/speed/results.json --page"
    marks = re.findall(r"<!-- table: (.*) -->\n(.*)", page)
    assert {table.name for table in tables(found)} == {name for name, first in marks if first != "(not run)"}
    with pytest.raises(ValueError, match="no line"):
        fill("", found)

"""A hold-out as reference: guarded from the first label on, from the library and a monitor."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import linear_model, preprocessing
from sklearn.tree import DecisionTreeClassifier

from attributary_explainers import (
    HoldoutWarning,
    InvalidParameterError,
    LabelError,
    LossMonitor,
    LossShift,
    LossShiftExplained,
    Monitor,
)

Row = tuple[dict[str, Any], bool]


def model(x: dict[str, Any]) -> dict[bool, float]:
    """Predict by both columns, as the labels are drawn."""
    p = 1.0 / (1.0 + math.exp(2.2 - 1.5 * x["a"] - x["b"]))
    return {True: p, False: 1.0 - p}


def rows(n: int, seed: int, *, permuted: bool = False) -> list[Row]:
    """Return rows whose labels come as the model says, or whose best column is another row's."""
    rng = np.random.default_rng(seed)
    x = [{"a": a, "b": b} for a, b in rng.normal(size=(n, 2)).tolist()]
    y = [bool(rng.random() < model(one)[True]) for one in x]
    if permuted:
        a = rng.permutation([one["a"] for one in x]).tolist()
        x = [{**one, "a": other} for one, other in zip(x, a, strict=True)]
    return list(zip(x, y, strict=True))


def shifts_in(monitor: LossMonitor, stream: list[Row], predict: Any = model) -> list[LossShift]:
    return [event for x, y in stream for event in monitor.update(x, y, predict(x)) if isinstance(event, LossShift)]


def test_damage_from_the_first_row_on_is_told_where_there_is_a_holdout_and_is_the_reference_without() -> None:
    broken = rows(2000, 2, permuted=True)
    told = shifts_in(LossMonitor.from_holdout(model, rows(4000, 1)), broken)
    assert told[0].kind == "worse"
    assert told[0].observation <= 500
    assert told[0].n_reference >= 4000
    assert not shifts_in(LossMonitor(model, learns=False), broken)


def test_nothing_is_told_of_a_model_that_is_as_its_holdout_says() -> None:
    for seed in range(4):
        assert not shifts_in(LossMonitor.from_holdout(model, rows(1000, seed)), rows(5000, 100 + seed))


def test_its_order_says_nothing() -> None:
    holdout = sorted(rows(1000, 1), key=lambda row: row[1])
    monitor = LossMonitor.from_holdout(model, holdout)
    assert monitor.guard.since == 1
    assert monitor.guard.sentence().startswith("guarded since observation 1: would see a rise of the error from 1")
    assert not shifts_in(monitor, rows(5000, 9))


def test_the_damaged_column_is_named_by_rows_of_the_holdout() -> None:
    monitor = LossMonitor.from_holdout(model, rows(4000, 1), window=300)
    events = [event for x, y in rows(1500, 2, permuted=True) for event in monitor.update(x, y, model(x))]
    explained = next(event for event in events if isinstance(event, LossShiftExplained))
    assert explained.features[0].name == "a"
    assert explained.shift.onset.observation >= 1


def test_what_would_be_seen_is_not_said_while_a_shift_is_open() -> None:
    monitor = LossMonitor.from_holdout(model, rows(4000, 1))
    assert monitor.guard.reach is not None
    shifts_in(monitor, rows(700, 2, permuted=True))
    assert monitor.shift is not None
    assert monitor.guard.sentence() == "guarded since observation 1"


def test_no_error_above_all_is_said_to_be_seen() -> None:
    rng = np.random.default_rng(1)
    swapped = [({"a": a}, bool(a < 0.0) != (rng.random() < 0.05)) for a in rng.normal(size=300).tolist()]
    monitor = LossMonitor.from_holdout(
        lambda x: {True: 0.9, False: 0.1} if x["a"] > 0.0 else {True: 0.1, False: 0.9}, swapped
    )
    assert monitor.guard.reach is None
    assert monitor.guard.sentence() == "guarded since observation 1"


def test_a_monitor_that_is_restored_goes_on_with_its_holdout() -> None:
    monitor = LossMonitor.from_holdout(model, rows(1000, 1))
    stream = rows(1500, 2, permuted=True)
    again = LossMonitor.from_snapshot(monitor.snapshot(), model)
    assert shifts_in(monitor, stream) == shifts_in(again, stream) != []


@pytest.mark.parametrize("output", ["number", "label"])
def test_other_models_wait_for_what_the_holdout_lacks(output: Any) -> None:
    rng = np.random.default_rng(1)

    def predict(x: dict[str, Any]) -> Any:
        return x["a"] if output == "number" else x["a"] > 0.0

    def stream(n: int, noise: float) -> list[tuple[dict[str, Any], Any]]:
        x, e = rng.normal(size=(2, n)).tolist()
        made = [a + noise * b for a, b in zip(x, e, strict=True)]
        return [({"a": a}, y if output == "number" else y > 0.0) for a, y in zip(x, made, strict=True)]

    short = LossMonitor.from_holdout(predict, stream(1000, 0.5), output=output)
    waits_for = short.guard.waits_for
    assert waits_for is not None
    assert 800 <= waits_for[1] <= 1000
    long = LossMonitor.from_holdout(predict, stream(8000, 0.5), output=output)
    assert long.guard.since == 1
    told = shifts_in(long, stream(1500, 2.0), predict)
    assert told[0].observation <= 300
    assert told[0].onset.observation >= 1
    assert long.shift is not None
    assert long.guard.sentence().startswith("guarded since observation 1: would see a rise of ")


@pytest.mark.parametrize(
    ("holdout", "parameters", "said"),
    [
        (rows(255, 1), {}, "holdout must be 256 rows or more with a label and a prediction, got 255"),
        ([(x, True) for x, _ in rows(500, 1)], {}, "holdout must be rows of two classes or more"),
        ([(x, None) for x, _ in rows(500, 1)], {}, "holdout must be 256 rows or more .*, got 0"),
        ([(x, "yes" if y else "no") for x, y in rows(500, 1)], {}, "holdout must be labels as the model predicts"),
        (tuple(map(list, zip(*rows(500, 1), strict=True))), {}, "holdout must be pairs of features and label, as zip"),
        (rows(500, 1), {"learns": True}, "holdout must be a model to be asked that does not learn: learns=False"),
    ],
)
def test_rows_that_are_no_holdout_are_refused_in_one_line(
    holdout: list[Any], parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParameterError, match=said) as refused:
        LossMonitor.from_holdout(model, holdout, **parameters)
    assert "\n" not in str(refused.value)


def test_numbers_that_shift_within_the_holdout_are_refused() -> None:
    rng = np.random.default_rng(1)
    holdout = [({"a": a}, a + (3.0 if i > 8000 else 0.3) * e) for i, (a, e) in enumerate(rng.normal(size=(12_000, 2)))]
    with pytest.raises(InvalidParameterError, match="holdout must be rows with one loss throughout: it shifts before"):
        LossMonitor.from_holdout(lambda x: float(x["a"]), holdout, output="number")


class TestMonitor:
    def test_it_is_guarded_at_once_and_its_importances_begin_with_the_holdout(self) -> None:
        monitor = Monitor(in_background=False).add("risk", model, loss="brier", change=None, holdout=rows(6000, 1))
        watched = monitor._models["risk"]
        assert watched.loss_watch is not None
        assert watched.loss_watch.monitor.guard.since == 1
        assert watched.n_observations == 0
        assert (
            watched.explainers["pfi"].n_observations == 999
        )  # of a thousand rows, and the first has nothing to draw from
        blocks = watched.shifts["pfi"]._rows
        assert blocks is not None
        assert len(blocks.values) == 999 // 128  # what the reference of importances grows from
        for x, y in rows(500, 2, permuted=True):
            monitor.observe("risk", x, y)
        shift = watched.loss_watch.monitor.shift
        assert shift is not None
        assert shift.kind == "worse"

    def test_one_that_learns_has_none(self) -> None:
        with pytest.raises(InvalidParameterError, match="holdout must be None for a model that learns"):
            Monitor().add("risk", linear_model.LogisticRegression(), learn=True, holdout=rows(500, 1))

    def test_rows_that_do_not_fit_add_no_model(self) -> None:
        monitor = Monitor()
        with pytest.raises(InvalidParameterError, match="holdout must be 256 rows or more"):
            monitor.add("risk", model, loss="brier", holdout=rows(10, 1))
        monitor.add("risk", model, loss="brier")


class TestWhatComesIsNotAsTheHoldout:
    """What a watch says of a hold-out that has other features, or other shares of classes, than the stream."""

    def test_features_that_no_row_has_are_refused_where_the_model_names_its_own(self) -> None:
        x = pd.DataFrame(np.random.default_rng(1).normal(size=(600, 2)), columns=["a", "b"])
        y = np.where(x["a"] + 0.5 * x["b"] > 0.5, "bad", "good")
        of_frame = DecisionTreeClassifier(max_depth=3).fit(x, y)
        linear = linear_model.LogisticRegression()
        scaled = preprocessing.StandardScaler() | linear_model.LogisticRegression()
        for row in x.to_dict("records"):
            linear.learn_one(row, row["a"] > 0.0)
            scaled.learn_one(row, row["a"] > 0.0)
        renamed = [({"A": one["a"], "B": one["b"]}, label) for one, label in zip(x.to_dict("records"), y, strict=True)]
        said = r"^holdout must be rows with features of the model, which knows 'a', 'b', got \['A', 'B'\]$"
        for known in (of_frame, linear, scaled):
            with pytest.raises(InvalidParameterError, match=said):
                LossMonitor.from_holdout(known, renamed)
            with pytest.raises(InvalidParameterError, match=said):
                Monitor().add("m", known, holdout=renamed)

    @pytest.mark.parametrize("restored", [False, True])
    def test_other_names_in_the_first_observation_are_told_once(self, restored: bool) -> None:
        def blind(x: dict[str, Any]) -> dict[bool, float]:
            return model({"a": x.get("a", 0.0), "b": x.get("b", 0.0)})

        monitor = LossMonitor.from_holdout(blind, [({"A": x["a"], "B": x["b"]}, y) for x, y in rows(1000, 1)])
        if restored:
            monitor = LossMonitor.from_snapshot(monitor.snapshot(), blind)
        with pytest.warns(HoldoutWarning) as found:
            shifts_in(monitor, rows(200, 2), blind)
        assert len(found) == 1
        said = str(found[0].message)
        assert said.startswith("the hold-out lacks 'a', 'b' and the hold-out alone has 'A', 'B': name its columns as")

    @pytest.mark.parametrize("restored", [False, True])
    def test_classes_that_were_resampled_are_told_once(self, restored: bool) -> None:
        made = rows(12_000, 1)
        positives = [row for row in made if row[1]]
        resampled = [*positives, *[row for row in made if not row[1]][: len(positives)]]
        monitor, stream = LossMonitor.from_holdout(model, resampled), rows(3000, 2)
        shifts_in(monitor, stream[:100])
        if restored:
            monitor = LossMonitor.from_snapshot(monitor.snapshot(), model)
        with pytest.warns(HoldoutWarning) as found:
            shifts_in(monitor, stream[100:])
        assert len(found) == 1
        n = 256
        share = 100.0 * sum(not y for _, y in stream[:n]) / n
        told = f"label False is 50 % of the hold-out, and {share:.1f} % of the first {n} labels: if its classes were"
        assert str(found[0].message).startswith(told)
        assert "False" not in found[0].message.without_values  # type: ignore[union-attr]

    def test_nothing_is_said_of_rows_that_are_as_the_holdout_is(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for seed in range(20):
                shifts_in(LossMonitor.from_holdout(model, rows(600, seed)), rows(600, 50 + seed))
            optional = LossMonitor.from_holdout(model, [({**x, "c": 1.0}, y) for x, y in rows(600, 1)])
            shifts_in(optional, rows(10, 2))


@pytest.mark.parametrize(
    ("output", "predicted", "label", "said"),
    [
        (
            "probabilities",
            {"yes": 0.5, "no": 0.5},
            True,
            "the label True is a number, and the model's classes are texts",
        ),
        ("probabilities", {0: 0.5, 1: 0.5}, "1", "the label '1' is a text, and the model's classes are numbers"),
        ("label", "yes", True, "the label True is a number, and the model's classes are texts: 'yes'"),
        ("number", 1.5, "2", "the target of a regression loss must be a number, got '2'"),
        (None, {"yes": 0.5, "no": 0.5}, False, "the label False is a number"),
    ],
)
def test_a_first_label_that_no_prediction_could_match_is_refused(
    output: Any, predicted: Any, label: Any, said: str
) -> None:
    monitor = LossMonitor(output=output, learns=False)
    monitor.update(None, None, predicted)  # counts for nothing
    for _ in range(2):
        with pytest.raises(LabelError, match=said):
            monitor.update(None, label, predicted)
    assert monitor.n_observations == 1


def test_a_new_version_is_guarded_by_the_holdout_at_once() -> None:
    with Monitor(in_background=False) as monitor:
        monitor.add("risk", model, loss="brier", change=None, holdout=rows(1000, 1)).replace("risk", model, "2")
        guard = monitor.guard("risk")
        assert guard is not None
        assert guard.since == 1


def test_a_thousand_rows_of_a_large_holdout_are_explained_and_all_are_the_reference() -> None:
    with Monitor(in_background=False) as monitor:
        monitor.add("risk", model, loss="brier", change=None, holdout=rows(2500, 1))
        watched = monitor._models["risk"]
        assert watched.loss_watch is not None
        assert watched.loss_watch.monitor.n_reference == 2500
        assert {one.n_observations + one.n_skipped for one in watched.explainers.values()} == {1000}

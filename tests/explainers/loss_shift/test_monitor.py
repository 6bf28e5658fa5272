"""LossMonitor on streams whose damage is known: kinds, features, onsets, ends, and state."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
from benchmarks.harm.rare import fraud
from river import anomaly, linear_model, preprocessing, tree
from river.datasets import synth

from attributary_explainers import (
    ChangeExplainer,
    InvalidParameterError,
    LossEvent,
    LossMonitor,
    LossShift,
    LossShiftEnd,
    LossShiftExplained,
    ModelError,
    SnapshotError,
    UnknownLabelWarning,
)

WEIGHTS = np.array([1.6, -1.1, 0.8, 0.5, 0.0, 0.0])
CLEAN, HURT = 12_000, 4_000
Row = tuple[dict[str, float], Any, Any]


def served(x: dict[str, float]) -> dict[int, float]:
    """Predict as the population is, where nothing is damaged."""
    p = 1.0 / (1.0 + math.exp(-sum(w * x[f"f{i}"] for i, w in enumerate(WEIGHTS.tolist())) + 0.4))
    return {0: 1.0 - p, 1: p}


def stream(n: int, damage: str = "", seed: int = 1) -> Iterator[Row]:
    """Yield observations of a logistic population, with labels and what the frozen model says."""
    rng = np.random.default_rng([seed, n, len(damage)])
    x = rng.normal(size=(n, len(WEIGHTS)))
    if damage == "doubtful":
        x[:, :3] *= 0.2
    p = 1.0 / (1.0 + np.exp(-x @ WEIGHTS + 0.4))
    if damage in ("level", "rarer"):
        p = 1.0 / (1.0 + np.exp(-x @ WEIGHTS - (0.4 if damage == "level" else -1.4)))
    y = (rng.random(n) < p).astype(int)
    if damage == "flipped":
        y = np.where(rng.random(n) < 0.35, 1 - y, y)
    if damage == "permuted":
        x[:, 1] = rng.permutation(x[:, 1])
        x[:, 4] += 3.0  # harmless: the model does not read it
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        values = {f"f{i}": value for i, value in enumerate(row)}
        yield values, label, served(values)


def run(monitor: LossMonitor, rows: Iterable[Row]) -> list[LossEvent]:
    return [event for row in rows for event in monitor.update(*row)]


def told(*parts: Iterable[Row], model: Any = None, **given: Any) -> list[LossEvent]:
    monitor = LossMonitor(model, **{"output": "probabilities", "learns": False, **given})
    return [event for part in parts for event in run(monitor, part)]


@pytest.mark.parametrize(("damage", "kind"), [("flipped", "worse"), ("permuted", "worse"), ("level", "level")])
def test_a_shift_has_the_kind_of_its_damage(damage: str, kind: str) -> None:
    events = told(stream(CLEAN), stream(HURT, damage))
    first, again = events[:2]
    assert isinstance(first, LossShift)
    assert isinstance(again, LossShiftExplained)
    assert again.shift.kind == kind
    assert first.kind in (kind, "worse")  # of so few observations a level is not always told apart
    assert CLEAN < first.observation < CLEAN + 2500
    assert abs(first.onset.observation - CLEAN) < 400
    assert first.loss.low < first.loss.after - first.loss.before < first.loss.high
    assert first.due_at == again.observation or again.observation > first.observation
    assert len(events) == 2


def test_nothing_is_told_where_nothing_happens() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    assert not run(monitor, stream(2 * CLEAN))
    assert monitor.ready
    assert monitor.shift is None
    assert monitor.n_observations == 2 * CLEAN
    assert monitor.excess is not None
    assert monitor.excess.low < 0.0 < monitor.excess.high


def test_a_damaged_feature_is_named_and_one_that_is_not_read_is_not() -> None:
    named = []
    for seed in (1, 2, 3):
        events = told(stream(CLEAN, seed=seed), stream(HURT, "permuted", seed), model=served)
        (explained,) = (event for event in events if isinstance(event, LossShiftExplained))
        assert explained.features[0].name == "f1"
        assert explained.features[0].significant
        named.append(explained.features[0])
    assert sum(one.importance_after for one in named) < 0.3 * sum(one.importance_before for one in named)
    unread = [one for one in explained.features if one.name in ("f4", "f5")]
    assert [(one.score, one.significant) for one in unread] == [(0.0, False)] * 2
    assert max(one.moved for one in unread) > 0.5
    assert "look first at f1" in explained.sentence("credit")
    assert "f4" not in explained.sentence("credit")


def test_the_level_says_what_mends_it() -> None:
    again = told(stream(CLEAN), stream(HURT, "level"))[1]
    assert isinstance(again, LossShiftExplained)
    (level,) = again.shift.level
    assert (level.label, level.observed > level.expected) == (1, True)
    # The logits moved by .8; what moves the mean by as much is somewhat less, because sure ones hardly move.
    assert level.intercept == pytest.approx(0.8, abs=0.35)
    assert "to its logit mends it" in again.sentence("credit")
    assert "mends it" not in again.shift.sentence("credit")


def test_damage_that_is_mended_is_over_and_damage_that_comes_again_is_told_again() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    events = run(monitor, stream(CLEAN))
    for seed in (1, 2):
        events += run(monitor, stream(HURT, "flipped", seed))
        events += run(monitor, stream(CLEAN, seed=seed + 5))
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["LossShift", "LossShiftExplained", "LossShiftEnd"] * 2
    for end, mended in zip((events[2], events[5]), (CLEAN + HURT, 2 * (CLEAN + HURT)), strict=True):
        assert isinstance(end, LossShiftEnd)
        assert end.reason == "returned"
        assert mended < end.observation < mended + 4000
        assert end.loss.low < 0.0 < end.loss.high
        assert "is over" in end.sentence()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_shift_is_not_over_while_the_damage_lasts_though_positives_are_few(seed: int) -> None:
    """The column stays permuted; predictions are of a model that was trained on balanced classes."""
    logits, y, _ = fraud(np.random.default_rng(seed), 0.01, 6000, 20_000)
    p = (1.0 / (1.0 + np.exp(-4.6 - logits))).tolist()
    monitor = LossMonitor(output="probabilities", learns=False)
    events = run(monitor, [({}, label, {0: 1.0 - q, 1: q}) for q, label in zip(p, y.tolist(), strict=True)])
    assert isinstance(events[0], LossShift)
    assert events[0].observation > 6000
    assert not [event for event in events if isinstance(event, LossShiftEnd) and event.reason == "returned"]


def test_where_a_class_became_rarer_labels_may_be_incomplete() -> None:
    again = told(stream(CLEAN), stream(HURT, "rarer"))[1]
    assert isinstance(again, LossShiftExplained)
    assert again.shift.kind == "level"
    assert ": if labels are complete, adding -" in again.sentence("credit")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_model_that_is_worse_and_becomes_much_worse_is_told_again(seed: int) -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, stream(CLEAN, seed=seed))
    rng = np.random.default_rng(seed)
    mild = [(x, int(y != (rng.random() < 0.15)), p) for x, y, p in stream(3000, seed=seed + 5)]
    (first,) = [event for event in run(monitor, mild) if isinstance(event, LossShift)]
    events = run(monitor, [(x, 1 - y, p) for x, y, p in stream(3000, seed=seed + 9)])
    ends, shifts = ([e for e in events if isinstance(e, kind)] for kind in (LossShiftEnd, LossShift))
    assert [end.reason for end in ends] == ["settled"]
    assert [shift.kind for shift in shifts] == ["worse"]
    assert CLEAN + 3000 < shifts[0].observation < CLEAN + 4000
    assert shifts[0].loss.after > first.loss.after + 0.2


def test_a_class_that_the_model_gives_no_probability_is_warned_of_once() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, stream(1000))
    with pytest.warns(UnknownLabelWarning, match="30 labels are 'chargeback', to which the model gave no") as warned:
        run(monitor, [(x, "chargeback" if i % 4 == 0 else y, p) for i, (x, y, p) in enumerate(stream(1000, seed=2))])
    assert len(warned) == 1


@pytest.mark.parametrize("before", [60_000, 60_400, 61_300])
@pytest.mark.parametrize("sure", [1.0, 0.999])
def test_a_model_that_is_sure_and_wrong_of_every_row_is_told_of_at_once(before: int, sure: float) -> None:
    rng = np.random.default_rng(1)
    p = 1.0 / (1.0 + np.exp(8.2 - 1.5 * rng.normal(size=before)))  # one in a thousand
    y = rng.random(before) < p
    monitor = LossMonitor(output="probabilities", learns=False)
    rows = zip(y.tolist(), p.tolist(), strict=True)
    assert not [event for label, q in rows for event in monitor.update(None, label, {True: q, False: 1.0 - q})]
    for _ in range(300):
        if told := monitor.update(None, False, {True: sure, False: 1.0 - sure}):
            break
    assert isinstance(told[0], LossShift)
    assert told[0].kind == "worse"


@pytest.mark.parametrize("seed", range(3))
def test_damage_that_lasts_is_not_said_to_be_over(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.exp(5.6 - rng.normal(size=(22_000, 4)) @ np.array([1.6, -1.2, 0.9, 0.5])))
    y = rng.random(len(p)) < p
    y[12_000:] = ~y[12_000:] & (rng.random(10_000) < y[:12_000].mean())  # positives are lost, others come
    monitor = LossMonitor(output="probabilities", learns=False)
    rows = zip(y.tolist(), p.tolist(), strict=True)
    events = [event for label, q in rows for event in monitor.update(None, label, {True: q, False: 1.0 - q})]
    assert isinstance(events[0], LossShift)
    assert not [event for event in events if isinstance(event, LossShiftEnd) and event.reason == "returned"]


def test_features_are_named_by_rows_that_are_all_of_the_shift() -> None:
    # Blocks of a sure model are long, so that the onset may lie long before the damage.
    rng = np.random.default_rng(7)

    def model(x: dict[str, float]) -> dict[bool, float]:
        p = 0.995 if x["a"] > 0.0 else 0.005
        return {True: p, False: 1.0 - p}

    monitor, events = LossMonitor(model, learns=False), []
    for i in range(15_000):
        a = float(rng.normal())
        x, y = {"a": 5.0 if i >= 12_000 else a, "b": float(rng.normal())}, bool((a > 0.0) ^ (rng.random() < 0.005))
        events += monitor.update(x, y, model(x))
    shift, explained = events[:2]
    assert shift.observation < 12_200
    assert isinstance(explained, LossShiftExplained)
    assert explained.observation >= 12_000 + monitor.window - 1
    assert explained.features[0].name == "a"
    assert explained.features[0].significant


def test_damage_that_comes_in_bursts_is_not_told_for_each_of_them() -> None:
    hurt, clean = stream(24_000, "flipped"), stream(24_000)
    bursts = (bad if i % 800 < 300 else good for i, (bad, good) in enumerate(zip(hurt, clean, strict=True)))
    shifts = [event for event in told(stream(CLEAN), bursts) if isinstance(event, LossShift)]
    assert 1 <= len(shifts) <= 5


def test_what_comes_after_a_shift_does_not_enter_its_reference() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    run(monitor, stream(CLEAN))
    before = monitor.n_reference
    run(monitor, stream(3 * CLEAN, "flipped"))
    assert monitor.n_reference <= before + 128  # the block in which it began
    assert monitor.shift is not None


def test_another_version_begins_anew() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    assert monitor.restart() is None
    run(monitor, stream(CLEAN))
    run(monitor, stream(HURT, "flipped"))
    end = monitor.restart()
    assert isinstance(end, LossShiftEnd)
    assert (end.reason, end.observation) == ("replaced", CLEAN + HURT)
    assert not monitor.ready
    assert monitor.shift is None
    assert not run(monitor, stream(CLEAN))
    assert run(monitor, stream(HURT, "flipped"))[0].observation > CLEAN + HURT + CLEAN


@pytest.mark.parametrize(
    "cut", [*(pytest.param(cut, marks=pytest.mark.long) for cut in (100, 4000, 8200, 12_033, 13_777)), 12_200, 15_900]
)
def test_a_restored_monitor_goes_on_bit_for_bit(cut: int) -> None:
    rows = [*stream(CLEAN), *stream(HURT, "permuted")]
    whole, first = LossMonitor(served, output="probabilities"), LossMonitor(served, output="probabilities")
    expected = run(whole, rows)
    events = run(first, rows[:cut])
    second = LossMonitor.from_snapshot(first.snapshot(), served)
    assert second.parameters == first.parameters
    events += run(second, rows[cut:])
    assert events == expected
    assert len(events) == 2
    assert second.snapshot() == whole.snapshot()


def test_a_snapshot_of_another_format_is_refused() -> None:
    with pytest.raises(SnapshotError, match="begin without it"):
        LossMonitor.from_snapshot({"format": 0})


def test_labels_alone_do_not_tell_harder_from_worse() -> None:
    def labels(rows: Iterable[Row]) -> Iterator[Row]:
        return ((x, "yes" if y else "no", "yes" if p[1] > 0.5 else "no") for x, y, p in rows)

    first = told(labels(stream(CLEAN)), labels(stream(HURT, "flipped")), output="label")[0]
    assert isinstance(first, LossShift)
    assert (first.kind, first.loss_name) == ("rose", "zero_one")
    assert first.excess is None


def numbers(n: int, damage: str = "", scale: float = 1.0, seed: int = 3) -> Iterator[Row]:
    """Yield observations of a linear population whose noise grows with f3, which does not move the mean."""
    rng = np.random.default_rng([seed, n, len(damage)])
    x = rng.normal(size=(n, 5))
    if damage == "noisy":
        x[:, 3] = abs(x[:, 3]) + 0.5
    y = x @ np.array([2.0, 1.0, 0.5, 0.0, 0.0]) + rng.normal(size=n) * np.where(x[:, 3] > 0.0, 2.0, 0.5)
    if damage == "permuted":
        x[:, 0] = rng.permutation(x[:, 0])
    if damage == "level":
        y = y + 1.5
    for row, target in zip(x.tolist(), y.tolist(), strict=True):
        values = {f"f{i}": value for i, value in enumerate(row)}
        yield values, scale * target, scale * predicted(values)


def predicted(x: dict[str, float]) -> float:
    """Predict as the population is."""
    return 2.0 * x["f0"] + x["f1"] + 0.5 * x["f2"]


@pytest.mark.parametrize(("damage", "kind"), [("permuted", "worse"), ("noisy", "harder"), ("level", "level")])
def test_a_model_of_numbers_tells_noisier_observations_from_damage(damage: str, kind: str) -> None:
    events = told(numbers(CLEAN), numbers(HURT, damage), model=predicted, output="number", learns=False)
    assert [type(event) for event in events[:2]] == [LossShift, LossShiftExplained]
    explained = events[1]
    assert isinstance(explained, LossShiftExplained)
    assert explained.shift.kind == kind
    assert (explained.shift.loss_name, explained.importance_loss) == ("absolute", "squared")
    if damage == "permuted":
        assert explained.features[0].name == "f0"


@pytest.mark.parametrize("scale", [1e-6, 1e9])
def test_numbers_in_any_unit_tell_the_same(scale: float) -> None:
    plain = told(numbers(CLEAN), numbers(HURT, "permuted"), output="number")
    other = told(numbers(CLEAN, scale=scale), numbers(HURT, "permuted", scale), output="number")
    assert [(type(e), e.observation) for e in plain] == [(type(e), e.observation) for e in other]
    assert isinstance(plain[0], LossShift)
    assert isinstance(other[0], LossShift)
    assert other[0].loss.after == pytest.approx(scale * plain[0].loss.after, rel=1e-6)


def test_a_model_that_learns_is_told_of_soon_after_a_change_and_not_while_it_learns() -> None:
    rng = np.random.default_rng(9)
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    monitor = LossMonitor(model)
    assert monitor.learns
    events: list[LossEvent] = []
    for t in range(9000):
        x = dict(zip("abc", rng.normal(size=3).tolist(), strict=True))
        y = (x["a"] > 0.0 if t < 6000 else x["b"] < 0.0) ^ (rng.random() < 0.1)
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        events += monitor.update(x, y, y_pred)
    first = events[0]
    assert isinstance(first, LossShift)
    assert 6000 < first.observation <= 6150
    assert first.kind == "worse"
    assert not first.has_split


def test_a_tree_that_has_split_is_said_to_have() -> None:
    rng = np.random.default_rng([0, 7])
    model, events = tree.HoeffdingAdaptiveTreeClassifier(seed=0), []
    monitor = LossMonitor(model)
    for _ in range(4000):
        x = dict(zip("abcdef", rng.uniform(-2.0, 2.0, size=6).tolist(), strict=True))
        y = int((x["a"] + x["b"] - 0.5 * x["c"] > 0.3) ^ (rng.random() < 0.08))
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        events += monitor.update(x, y, y_pred)
    shifts = [event for event in events if isinstance(event, LossShift)]
    assert shifts
    assert all(shift.has_split for shift in shifts)
    assert "has split its tree and learns the new leaves" in shifts[0].sentence()


@pytest.mark.parametrize("seed", [0, 2])
def test_a_tree_that_learns_new_leaves_is_told_of_in_one_voice(seed: int) -> None:
    model, said = tree.HoeffdingAdaptiveTreeClassifier(seed=seed), []
    monitor, change = LossMonitor(model), ChangeExplainer(model)
    for x, y in islice(synth.Mixed(seed=seed, classification_function=seed % 2), 8000):  # nothing ever changes
        y_pred = model.predict_proba_one(x)
        said += [event.sentence() for event in monitor.update(x, y, y_pred)] if y_pred else []
        model.learn_one(x, y)
        said += [event.sentence() for event in change.update(x, y, y_pred)]
    assert not [one for one in said if "worse" in one]
    split, alarm, over, released = said
    assert "has split its tree and learns the new leaves" in split
    assert "may have changed" in alarm
    assert "is over: the model is as right as it says again" in over
    assert "is not confirmed: since then nothing has changed beyond noise" in released


def test_a_tree_that_has_split_and_does_not_recover_has_become_worse() -> None:
    rng, model = np.random.default_rng(3), tree.HoeffdingTreeClassifier(grace_period=50)
    monitor, said = LossMonitor(model), []
    for i in range(9000):
        x = dict(zip("abc", rng.uniform(-2.0, 2.0, size=3).tolist(), strict=True))
        y = int((x["a"] > 0.0) ^ (rng.random() < (0.05 if i < 5000 else 0.35)))
        y_pred = model.predict_proba_one(x)
        said += [event.sentence() for event in monitor.update(x, y, y_pred)] if y_pred else []
        model.learn_one(x, y)
        if i == 5000:
            monitor._split_at = 5000  # as if it had split there
    assert "has split its tree" in said[0]
    assert "explained: the model has become worse" in said[1]


def test_what_the_caller_does_with_an_observation_afterwards_is_nothing_to_the_monitor() -> None:
    def snapshot(*, clears: bool) -> Any:
        monitor = LossMonitor(served, learns=True, output="probabilities", window=60)
        for x, y, y_pred in stream(2500):
            values, predicted = dict(x), dict(y_pred)
            monitor.update(values, y, predicted)
            if clears:
                values.clear()
                predicted.clear()
        return monitor.snapshot()

    assert snapshot(clears=True) == snapshot(clears=False)


def test_late_labels_are_taken_in_the_order_in_which_they_come() -> None:
    rows = [*stream(CLEAN), *stream(HURT, "flipped")]
    late = [rows[i] for i in np.argsort(np.arange(len(rows)) + np.random.default_rng(0).exponential(300, len(rows)))]
    first = told(late)[0]
    assert isinstance(first, LossShift)
    assert first.kind == "worse"
    assert CLEAN < first.observation < CLEAN + 1500


def hostile() -> Iterator[Row]:
    """Yield what streams have, among usable observations."""
    rng = np.random.default_rng(4)
    labels = [f"class {i}" for i in range(40)]
    odd: list[tuple[Any, Any]] = [
        (None, {"class 0": 1.0}),
        (math.nan, {"class 0": 1.0}),
        ("class 1", None),
        ("class 1", {}),
        ("class 1", {"class 1": math.nan}),
        ("never seen", {"class 1": 1.0}),
        (True, {"class 2": 1.0}),
    ]
    for i in range(7000):
        p = rng.dirichlet(np.ones(40)).tolist()
        y = labels[int(rng.choice(40, p=p))]
        yield {"a": 1.0}, *(odd[i % len(odd)] if i % 13 == 0 else (y, dict(zip(labels, p, strict=True))))


def test_forty_classes_and_odd_observations_are_no_reason_to_tell_anything() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    assert not run(monitor, hostile())
    assert monitor.n_observations == 7000


def test_one_class_alone_is_no_reason_to_fail() -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    for _ in range(12_000):
        assert not monitor.update(None, "only", {"only": 1.0})
    assert monitor.excess is None or monitor.excess.z == 0.0


def test_what_the_model_predicts_is_inferred() -> None:
    assert LossMonitor(linear_model.LogisticRegression()).output == "probabilities"
    assert LossMonitor(linear_model.LinearRegression()).output == "number"
    for y_pred, output in (({"a": 1.0}, "probabilities"), (1.5, "number"), ("a", "label"), (1, "label")):
        monitor = LossMonitor(learns=False)
        monitor.update(None, None, y_pred)
        assert monitor.output == output
    with pytest.raises(InvalidParameterError, match="classifier or a regressor"):
        LossMonitor(anomaly.HalfSpaceTrees())
    with pytest.raises(InvalidParameterError, match="output"):
        LossMonitor(output="any")
    with pytest.raises(InvalidParameterError, match="once_in"):
        LossMonitor(once_in=10)


def logistic(n: int, steep: float, shift: float = 0.0, seed: int = 5) -> Iterator[Row]:
    """Yield observations of an exact model whose logits have this spread; the truth's intercept is shifted."""
    rng = np.random.default_rng([seed, n])
    for z in (rng.normal(size=n) * steep).tolist():
        q = 1.0 / (1.0 + math.exp(-z))
        yield {}, int(rng.random() < 1.0 / (1.0 + math.exp(-z - shift))), {0: 1.0 - q, 1: q}


@pytest.mark.parametrize(("steep", "shift"), [(0.5, 1.0), (2.0, 1.0), (2.0, -1.0), (2.0, 2.0), (4.0, 1.5)])
def test_the_intercept_mends_the_level_however_sure_the_model_is(steep: float, shift: float) -> None:
    events = told(logistic(CLEAN, steep), logistic(HURT, steep, shift))
    again = events[-1]
    assert isinstance(again, LossShiftExplained)
    assert again.shift.kind == "level"
    (level,) = again.shift.level
    assert level.intercept is not None
    assert level.intercept * (1.0 if level.label == 1 else -1.0) == pytest.approx(shift, abs=0.3)


def test_a_model_of_labels_that_is_stuck_on_one_of_them_is_not_just_off_its_level() -> None:
    rng = np.random.default_rng(1)
    rows = [({}, int(y), int(y) if rng.random() < 0.85 else int(rng.integers(3))) for y in rng.integers(3, size=14_000)]
    stuck = [(x, y, 0) for x, y, _ in rows[CLEAN:]]
    events = told(rows[:CLEAN], stuck, output="label")
    assert [event.kind for event in events if isinstance(event, LossShift)] == ["rose"]
    assert "logit" not in " ".join(event.sentence() for event in events)


def test_the_interval_of_an_onset_holds_it() -> None:
    held = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        at = CLEAN + int(rng.integers(500))
        z = 2.0 * rng.normal(size=at + 1000)
        y = rng.random(len(z)) < 1.0 / (1.0 + np.exp(-z))
        z[at:] *= -1.0
        q = (1.0 / (1.0 + np.exp(-z))).tolist()
        rows = [({}, label, {True: p, False: 1.0 - p}) for label, p in zip(y.tolist(), q, strict=True)]
        first = told(rows)[0]
        assert isinstance(first, LossShift)
        assert first.onset.low is not None
        held += first.onset.low <= at + 1 <= first.onset.high
    assert held >= 10


def test_what_is_passed_in_wrongly_is_said() -> None:
    with pytest.raises(InvalidParameterError, match="zip"):
        LossMonitor(output="probabilities").update(None, 1, 0.4)
    with pytest.raises(InvalidParameterError, match="missing"):
        LossMonitor(missing="foo")
    with pytest.raises(InvalidParameterError, match="learns"):
        LossMonitor(learns="no")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="int"):
        LossMonitor(3)
    with pytest.raises(SnapshotError):
        LossMonitor.from_snapshot(None)  # type: ignore[arg-type]
    monitor = LossMonitor()
    unknown = [({}, "1", {"one": 0.3, "none": 0.7})] * 5000
    with pytest.warns(UnknownLabelWarning, match="'1'"):
        run(monitor, unknown)


def classes(n: int, scale: float, seed: int, *, swapped: bool = False) -> Iterator[Row]:
    """Yield labels of four classes; the served logits are `scale` times those of the truth, and have a season."""
    rng = np.random.default_rng([seed, n])
    logits = 1.2 * rng.normal(size=(n, 4)) + [0.8, 0.0, -0.5, -2.0]
    logits[:, 1] += np.sin(2.0 * np.pi * np.arange(n) / 3000)
    p = np.exp(logits)
    y = (rng.random((n, 1)) * p.sum(axis=1, keepdims=True) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    if swapped:
        logits[:, [1, 2]] = logits[:, [2, 1]]
    served = np.exp(scale * logits)
    served /= served.sum(axis=1, keepdims=True)
    for label, row in zip(y.tolist(), served.tolist(), strict=True):
        yield {}, "abcd"[label], dict(zip("abcd", row, strict=True))


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_a_model_of_four_classes_that_is_too_sure_of_itself_is_told_of_once_two_of_them_are_swapped(
    scale: float,
) -> None:
    monitor = LossMonitor(output="probabilities", learns=False)
    assert not run(monitor, classes(CLEAN, scale, 1))
    first = run(monitor, classes(HURT, scale, 2, swapped=True))[0]
    assert isinstance(first, LossShift)
    assert first.kind == "worse"
    assert first.observation < CLEAN + 1500
    assert first.n_reference > 0.8 * CLEAN


def test_a_class_that_becomes_more_frequent_is_off_its_level() -> None:
    def resampled() -> Iterator[Row]:
        rng = np.random.default_rng(8)
        return (row for row in classes(3 * HURT, 1.0, 3) if row[1] == "b" or rng.random() < 0.5)

    events = told(classes(CLEAN, 1.0, 1), resampled())
    explained = next(event for event in events if isinstance(event, LossShiftExplained))
    assert explained.shift.kind == "level"
    (level,) = explained.shift.level
    assert level.label == "b"
    assert level.observed > level.expected
    assert level.intercept == pytest.approx(math.log(2.0), abs=0.25)

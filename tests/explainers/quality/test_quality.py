"""Quality against scikit-learn with the weights written out, and against River's metrics fed row by row."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from river import metrics as river
from sklearn import metrics as sklearn

from attributary_explainers import QUALITY_NAMES, InvalidParameterError, ModelError, Quality
from attributary_explainers.quality.counts import MAX_CELLS
from attributary_explainers.quality.names import METRICS, at_of, reads_of
from tests.explainers.plain_data import strangers

AT = ["precision_at_5%", "recall_at_5%", "precision_at_0.7", "recall_at_0.7", "recall_at_0.1"]
OF_NUMBERS = [name for name in QUALITY_NAMES if reads_of(name) == "number"]
OF_CLASSES = [name for name in [*QUALITY_NAMES, *AT] if reads_of(name) != "number"]
OF_MANY_CLASSES = [name for name in OF_CLASSES if not reads_of(name).startswith("two")]
OF_TWO_CLASSES = [name for name in OF_CLASSES if reads_of(name).startswith("two")]

ORACLES: dict[str, Any] = {
    "accuracy": sklearn.accuracy_score,
    "balanced_accuracy": sklearn.balanced_accuracy_score,
    "cohen_kappa": sklearn.cohen_kappa_score,
    "mcc": sklearn.matthews_corrcoef,
    "mae": sklearn.mean_absolute_error,
    "mse": sklearn.mean_squared_error,
    "r2": sklearn.r2_score,
    "rmse": sklearn.root_mean_squared_error,
    "mape": lambda y, p, sample_weight: 100 * np.average(np.abs(y - p) / np.abs(y), weights=sample_weight),
    "smape": lambda y, p, sample_weight: (
        100 * np.average(2 * np.abs(y - p) / (np.abs(y) + np.abs(p)), weights=sample_weight)
    ),
}
_SCORES = {
    "f1": sklearn.f1_score,
    "jaccard": sklearn.jaccard_score,
    "precision": sklearn.precision_score,
    "recall": sklearn.recall_score,
}


def weights(n: int, alpha: float) -> np.ndarray:
    return (1.0 - alpha) ** np.arange(n)[::-1]


def expected(name: str, y: Any, labels: Any, rows: list[dict[Any, float]], weight: np.ndarray, positive: Any) -> float:
    if name in ORACLES:
        return float(ORACLES[name](y, labels, sample_weight=weight))
    if name == "cross_entropy":
        return float(
            np.average([-np.log(row.get(label, 0.0)) for label, row in zip(y, rows, strict=True)], weights=weight)
        )
    if name == "roc_auc":
        return float(sklearn.roc_auc_score(y == positive, [row[positive] for row in rows], sample_weight=weight))
    if name == "pr_auc":
        scores = [row[positive] for row in rows]
        return float(sklearn.average_precision_score(y == positive, scores, sample_weight=weight))
    if (at := at_of(name)) is not None:
        return naive_at(at.metric, at.number, at.is_rate, y == positive, [row[positive] for row in rows], weight)
    average, _, score = name.rpartition("_")
    if not average:
        return float(_SCORES[score](y, labels, pos_label=positive, sample_weight=weight))
    return float(_SCORES[score](y, labels, average=average, sample_weight=weight, zero_division=0))


def naive_at(
    metric: str, number: float, is_rate: bool, y: np.ndarray, scores: list[float], weight: np.ndarray
) -> float:
    """Take observations from the highest score down until they are the share, the last one in part; or by p >= t."""
    left, share = number * weight.sum(), np.zeros(len(y))
    for i in np.argsort(-np.array(scores), kind="stable"):
        share[i] = min(1.0, max(0.0, left / weight[i])) if is_rate else float(scores[i] >= number)
        left -= weight[i]
    right = float((share * weight)[y].sum())
    return right / float((share * weight).sum() if metric == "precision" else weight[y].sum())


def of_classes(n: int, classes: list[Any], seed: int = 1) -> tuple[np.ndarray, list[dict[Any, float]], np.ndarray]:
    """Labels, probabilities that know something of them, and the most probable label of each."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.linspace(0.6, 1.4, len(classes)), n)
    y = [classes[rng.choice(len(classes), p=row)] for row in p]
    rows = [dict(zip(classes, row.tolist(), strict=True)) for row in p]
    return np.array(y), rows, np.array([max(row, key=row.__getitem__) for row in rows])


@pytest.mark.parametrize("alpha", [0.002, 0.3])
@pytest.mark.parametrize("classes", [[False, True], ["no", "yes"], [0, 1, 2, 3, 4], [f"label {i}" for i in range(12)]])
def test_metrics_of_classes_are_those_of_scikit_learn_with_the_weights_written_out(
    classes: list[Any], alpha: float
) -> None:
    y, rows, labels = of_classes(3000, classes)
    quality = Quality(OF_CLASSES, alpha=alpha)
    for label, row in zip(y.tolist(), rows, strict=True):
        quality.update(label, row)
    found = quality.value
    for name in OF_CLASSES:
        if len(classes) > 2 and name in OF_TWO_CLASSES:
            assert found[name] is None, name
            continue
        # Scores of one bin count as equal: with few effective observations that is more.
        near = (0.0005 if alpha < 0.01 else 0.02) if name == "roc_auc" else 1e-9
        if name == "pr_auc" or "%" in name:
            near = 0.002 if alpha < 0.01 else 0.02
        want = expected(name, y, labels, rows, weights(3000, alpha), classes[-1])
        assert found[name] == pytest.approx(want, abs=near), name


@pytest.mark.parametrize("alpha", [0.002, 0.3])
def test_metrics_of_numbers_are_those_of_scikit_learn_with_the_weights_written_out(alpha: float) -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(1e4, 3.0, 3000)  # far from 0, where a sum of squares would lose its digits
    p = y + rng.normal(0.5, 2.0, 3000)
    quality = Quality(OF_NUMBERS, alpha=alpha)
    for pair in zip(y.tolist(), p.tolist(), strict=True):
        quality.update(*pair)
    for name in OF_NUMBERS:
        want = ORACLES[name](y, p, sample_weight=weights(3000, alpha))
        assert quality.value[name] == pytest.approx(want, rel=1e-9), name


@pytest.mark.parametrize("name", METRICS)
def test_the_reference_is_the_metric_of_river_over_the_first_observations(name: str) -> None:
    """They weigh the same, so River's own metric, row by row, is the oracle."""
    metric: Any = METRICS[name].make()
    quality = Quality([name], alpha=0.01, reference_after=50)
    y, rows, labels = of_classes(400, [False, True])
    numbers = np.random.default_rng(3).normal(5.0, 1.0, (400, 2))
    for i in range(400):
        label, row = bool(y[i]), rows[i]
        given: Any
        if METRICS[name].reads == "number":
            label, row = given = tuple(numbers[i].tolist())  # type: ignore[assignment]
        else:
            given = label, (bool(labels[i]) if metric.requires_labels else row)
        quality.update(label, row)
        if 50 <= i < 250:
            metric.update(*given)
        if i < 249:
            assert quality.reference == {name: None}
    near = 0.01 if name == "roc_auc" else 1e-9  # River's has ten thresholds
    assert quality.reference[name] == pytest.approx(metric.get(), abs=near)
    assert quality.reference_size == 200


def test_roc_auc_is_what_river_makes_of_scores_that_are_the_numbers_of_their_groups() -> None:
    """Ten scores make ten groups: with thresholds between them, River's metric row by row says the same."""
    rng = random.Random(4)
    quality, metric = Quality(["roc_auc"], alpha=0.02), river.ROCAUC(n_thresholds=11)
    scores = [0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99, 0.9999]
    for n in range(100):
        i = n % 10
        y = rng.random() < 0.2 + 0.06 * i
        quality.update(y, {False: 1.0 - scores[i], True: scores[i]})
        metric.update(y, (i + 0.5) / 10)
    assert quality.reference["roc_auc"] == pytest.approx(metric.get(), abs=1e-12)


@pytest.mark.parametrize(("centre", "spread"), [(-5.0, 1.0), (-7.0, 2.0), (0.0, 30.0), (3.0, 0.5), (0.0, 0.02)])
def test_roc_auc_of_rare_classes_and_of_sure_models_is_exact_to_three_thousandths(centre: float, spread: float) -> None:
    rng = np.random.default_rng(5)
    score = rng.normal(centre, spread, 6000)
    p = 1.0 / (1.0 + np.exp(-score))
    y = rng.random(6000) < 1.0 / (1.0 + np.exp(-(centre + (score - centre) / max(1.0, spread / 3))))
    quality, ten = Quality(["roc_auc"], alpha=0.001), river.ROCAUC()
    for label, q in zip(y.tolist(), p.tolist(), strict=True):
        quality.update(label, {False: 1.0 - q, True: q})
        ten.update(label, q)
    want = sklearn.roc_auc_score(y, p, sample_weight=weights(6000, 0.001))
    assert quality.value["roc_auc"] == pytest.approx(want, abs=0.003)
    if centre < 0.0:
        assert ten.get() < sklearn.roc_auc_score(y, p) - 0.15, "why the thresholds are not River's"


@pytest.mark.parametrize("alpha", [0.001, 0.01])
@pytest.mark.parametrize(("centre", "spread"), [(-5.0, 1.0), (-7.0, 2.0), (-4.0, 1.5), (0.0, 0.02)])
def test_metrics_of_rare_classes_are_near_those_with_all_scores_written_out(
    centre: float, spread: float, alpha: float
) -> None:
    rng = np.random.default_rng(7)
    score = rng.normal(centre, spread, 6000)
    p = 1.0 / (1.0 + np.exp(-score))
    y = rng.random(6000) < p
    names = ["pr_auc", "precision_at_20%", "recall_at_20%", "recall_at_0.05"]
    names += ["precision_at_1%", "recall_at_1%"] if alpha < 0.01 else []  # one per cent of 200 observations are two
    quality = Quality(names, alpha=alpha)
    for label, q in zip(y.tolist(), p.tolist(), strict=True):
        quality.update(label, {False: 1.0 - q, True: q})
    rows = [{False: 1.0 - q, True: q} for q in p.tolist()]
    for name in names:
        want = expected(name, y, None, rows, weights(6000, alpha), True)
        # A bin of the 400 holds a few of the 2 / alpha observations that count.
        assert quality.value[name] == pytest.approx(want, abs=0.012 if "0.05" not in name else 1e-9), name


def test_scores_that_are_few_are_told_apart_exactly() -> None:
    rng = random.Random(8)
    scores = [0.001, 0.02, 0.1, 0.3, 0.5, 0.75, 0.8, 0.95, 0.99, 0.9999]
    names = ["pr_auc", *(f"{of}_at_{at}" for of in ("precision", "recall") for at in ("3%", "10%", "50%", "100%"))]
    names += [f"{of}_at_{at}" for of in ("precision", "recall") for at in (0.02, 0.3, 0.75, 0.9, 0.9999)]
    quality, y, p = Quality(names, alpha=0.02), [], []
    for n in range(100):
        p.append(scores[n % 10])
        y.append(rng.random() < 0.1 + 0.05 * (n % 10))
        quality.update("yes" if y[-1] else "no", {"no": 1.0 - p[-1], "yes": p[-1]})
    # Of equal scores each is there in part: the share of positives among them is that of all that are equal.
    truth = np.array([np.mean([y[j] for j in range(i % 10, 100, 10)]) for i in range(100)])
    for name in names:
        if name == "pr_auc":
            want = sklearn.average_precision_score(y, p)
        else:
            at = at_of(name)
            assert at is not None
            share = np.zeros(100)
            if at.is_rate:
                whole = int(at.number * 10) * 10
                order = np.argsort(-np.array(p), kind="stable")
                share[order[:whole]] = 1.0
                share[order[whole : whole + 10]] = at.number * 10 - int(at.number * 10)
            else:
                share = np.array(p) >= at.number
            right = float((share * truth).sum())
            want = right / (share.sum() if at.metric == "precision" else truth.sum())
        assert quality.reference[name] == pytest.approx(want, abs=1e-12), name


def test_without_both_classes_nothing_is_said_and_nothing_found_is_no_precision() -> None:
    quality = Quality(["pr_auc", "precision_at_5%", "recall_at_0.9", "precision_at_0.9"], alpha=0.01)
    for _ in range(30):
        quality.update(False, {False: 0.99, True: 0.01})
    assert set(quality.value.values()) == {None}
    quality.update(True, {False: 0.5, True: 0.5})
    found = quality.value
    assert (found["recall_at_0.9"], found["precision_at_0.9"], found["pr_auc"]) == (0.0, 0.0, 1.0)
    quality.update("third", {"third": 1.0})
    assert set(quality.value.values()) == {None}


def test_a_class_that_is_certain_need_not_have_the_other_beside_it() -> None:
    both, one = Quality(["roc_auc"], alpha=0.01), Quality(["roc_auc"], alpha=0.01)
    for i in range(300):
        label, certain = "ab"[i % 3 == 0], "ab"[i % 4 == 0]
        both.update(label, {"a": 0.0, "b": 0.0} | {certain: 1.0})
        one.update(label, {certain: 1.0})
    assert one.value == both.value


@pytest.mark.parametrize("classes", [[False, True], ["a", "b", "c"]])
def test_restored_and_continued_equals_never_stopped_to_the_bit(classes: list[Any]) -> None:
    y, rows, _ = of_classes(700, classes)
    n = [(random.Random(i).gauss(0, 1), random.Random(-i).gauss(0, 1)) for i in range(700)]
    for names, given in ((OF_CLASSES, list(zip(y.tolist(), rows, strict=True))), (OF_NUMBERS, n)):
        whole = Quality(names, alpha=0.9, reference_after=3)  # weights are scaled down every twelve observations
        slow = Quality(names, alpha=0.004)  # the reference is being filled at the stop
        for quality in (whole, slow):
            for pair in given[:400]:
                quality.update(*pair)
            snapshot = quality.snapshot()
            assert strangers(snapshot) == []
            again = Quality.from_snapshot(snapshot)
            for pair in given[400:]:
                quality.update(*pair)
                again.update(*pair)
            assert again.snapshot() == quality.snapshot()
            assert again.value == quality.value
            assert again.reference == quality.reference


def test_a_snapshot_of_other_parameters_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="snapshot must be of a quality with"):
        Quality(["mae"], alpha=0.1).restore(Quality(["mae"], alpha=0.2).snapshot())


def test_with_alpha_one_only_the_last_observation_counts() -> None:
    quality = Quality(["accuracy", "cross_entropy"], alpha=1.0)
    for y in (True, False, True):
        quality.update(y, {False: 0.25, True: 0.75})
        assert quality.value["accuracy"] == float(y)
    assert quality.value["cross_entropy"] == pytest.approx(-np.log(0.75))
    assert quality.reference["accuracy"] == 0.5  # the first two


def test_before_the_first_observation_nothing_is_known() -> None:
    quality = Quality(["accuracy", "f1"])
    assert quality.value == quality.reference == {"accuracy": None, "f1": None}
    quality.update("a", {"a": 1.0})
    assert quality.value == {"accuracy": 1.0, "f1": None}, "of one label nobody knows which is positive"
    numbers = Quality(["mae", "r2"])
    numbers.update(3, 4)
    assert numbers.value == {"mae": 1.0, "r2": None}


def test_a_third_label_silences_metrics_of_two_until_it_has_faded() -> None:
    quality = Quality(["accuracy", "f1", "roc_auc"], alpha=0.1)
    y, rows, _ = of_classes(1500, ["no", "yes"])
    for i, label in enumerate(y.tolist()):
        quality.update("???" if i == 20 else label, rows[i])
        if 20 <= i < 100:
            assert quality.value["f1"] is quality.value["roc_auc"] is None
            assert quality.value["accuracy"] is not None
    assert quality.value["f1"] is not None
    assert quality.value["roc_auc"] is not None


def test_a_label_that_was_never_predicted_loses_what_river_clips_at() -> None:
    quality = Quality(["cross_entropy"], alpha=0.5)
    quality.update("new", {"a": 0.5, "b": 0.5})
    assert quality.value["cross_entropy"] == pytest.approx(-np.log(1e-15))


def test_ever_new_labels_leave_the_state_bounded() -> None:
    quality = Quality(["accuracy", "macro_f1", "roc_auc"], alpha=1e-4)
    for i in range(3 * MAX_CELLS):
        quality.update(f"id {i}", {"common": 1.0})
        quality.update(f"id {i}", {f"id {i}": 1.0})
    assert len(quality.snapshot()["state"]["_now"]["state"]["_counts"]["state"]["_pairs"]) <= MAX_CELLS
    weight = weights(6 * MAX_CELLS, 1e-4)
    assert quality.value["accuracy"] == pytest.approx(weight[1::2].sum() / weight.sum()), (
        "rare labels count, by whether they were right"
    )


@pytest.mark.parametrize("y", [2**60, True, 0.0, 1e-300, -1e99, np.float64(3.0)])
def test_targets_of_a_stranger_s_stream_leave_numbers(y: Any) -> None:
    quality = Quality(OF_NUMBERS, alpha=0.5)
    for pair in ((y, 1.0), (1.0, 1e99), (y, -3)):
        quality.update(*pair)
    assert all(value is not None and np.isfinite(value) for value in quality.value.values())
    assert strangers(quality.snapshot()) == []


def test_numbers_that_no_mean_takes_are_left_out() -> None:
    quality = Quality(["mae", "r2"], alpha=0.5)
    for pair in ((1.0, 2.0), (3.0, 3.0)):
        quality.update(*pair)
    before = quality.value
    quality.update(1e120, 0.0)
    quality.update(0.0, -1e120)
    assert quality.value == before


def test_a_kind_of_prediction_that_the_metrics_do_not_read_is_refused() -> None:
    with pytest.raises(ModelError, match="metrics of classes need a dict"):
        Quality(["accuracy"]).update(True, 0.5)
    with pytest.raises(ModelError, match="metrics of numbers need numbers"):
        Quality(["mae"]).update("a", 0.5)
    with pytest.raises(InvalidParameterError, match="all of classes or all of numbers"):
        Quality(["accuracy", "mae"])
    with pytest.raises(InvalidParameterError, match="a list of names"):
        Quality("accuracy")


@pytest.mark.parametrize("names", [OF_CLASSES, OF_NUMBERS])
def test_observations_that_wait_are_tallied_as_if_somebody_had_asked_after_each(names: list[str]) -> None:
    y, rows, _ = of_classes(400, ["a", "b", "c"], seed=4)
    given: list[tuple[Any, Any]] = list(zip(y.tolist(), rows, strict=True))
    odd: list[tuple[Any, Any]] = [("a", 0.5), ("b", {}), (["b"], {"b": 1.0}), (np.str_("c"), {"b": 1.0}), (1, {"a": 1})]
    if names is OF_NUMBERS:
        rng = np.random.default_rng(5)
        given = [(a, b) for a, b in rng.normal(size=(400, 2)).tolist()]
        odd = [("a", 0.5), (1.0, {}), (1e300, 0.0), (3, True), (10**400, 1.0)]
    waits, asked = (Quality(names, alpha=0.05, reference_after=45) for _ in range(2))
    for i, (label, prediction) in enumerate(given):
        if i % 37 == 36:
            said = []
            for quality in (waits, asked):
                try:
                    quality.update(*odd[i // 37 % len(odd)])
                except Exception as error:  # noqa: BLE001 - whatever it is, it is the same
                    said.append(repr(error))
            assert len(said) in (0, 2)
            assert said[:1] == said[1:]
        for quality in (waits, asked):
            mine = dict(prediction) if isinstance(prediction, dict) else prediction
            quality.update(label, mine)
            if isinstance(mine, dict):
                mine.clear()  # what the caller does with it afterwards is nothing to us
        assert asked.value
        assert waits.n_observations == asked.n_observations
    assert waits.reference == asked.reference
    assert asked.reference[names[0]] is not None
    assert waits.snapshot() == asked.snapshot()


def test_metrics_are_the_same_in_every_order_of_hashing() -> None:
    """Sums over classes are taken in their sorted order: text is hashed otherwise in every process."""
    y, rows, _ = of_classes(300, [f"class {i}" for i in range(9)])
    shuffled = [f"class {i}" for i in (4, 7, 1, 8, 0, 2, 6, 3, 5)]
    first, second = Quality(OF_MANY_CLASSES, alpha=0.01), Quality(OF_MANY_CLASSES, alpha=0.01)
    for label, row in zip(y.tolist(), rows, strict=True):
        first.update(label, row)
        second.update(label, {name: row[name] for name in shuffled})
    assert first.value == second.value


def test_the_positive_class_is_the_one_that_is_named_and_none_where_it_has_not_come():
    names, rng = (
        ["f1", "precision", "recall", "pr_auc", "precision_at_0.6", "mcc", "accuracy"],
        np.random.default_rng(7),
    )
    quality, greater, y, p = Quality(names, alpha=0.005, positive="fraud"), Quality(names, alpha=0.005), [], []
    for score in rng.beta(1.0, 3.0, 400).tolist():
        y.append("fraud" if rng.random() < score else "ok")
        p.append(score)
        for one in (quality, greater):
            one.update(y[-1], {"fraud": score, "ok": 1.0 - score})
    called = ["fraud" if score > 0.5 else "ok" for score in p]
    is_fraud = [label == "fraud" for label in y]
    want = {
        "f1": sklearn.f1_score(y, called, pos_label="fraud"),
        "precision": sklearn.precision_score(y, called, pos_label="fraud"),
        "recall": sklearn.recall_score(y, called, pos_label="fraud"),
        "pr_auc": sklearn.average_precision_score(is_fraud, p),
        "precision_at_0.6": sklearn.precision_score(is_fraud, [score >= 0.6 for score in p]),
        "mcc": sklearn.matthews_corrcoef(y, called),
        "accuracy": sklearn.accuracy_score(y, called),
    }
    assert quality.reference == pytest.approx(want, abs=0.002)
    assert greater.reference["f1"] == pytest.approx(sklearn.f1_score(y, called, pos_label="ok"))
    again = Quality.from_snapshot(quality.snapshot())
    assert (again.positive, again.value) == ("fraud", quality.value)
    other = Quality(["f1", "accuracy"], positive="fraud")
    for label in ("ok", "yes"):
        other.update(label, {label: 1.0})
    assert other.value == {"f1": None, "accuracy": 1.0}

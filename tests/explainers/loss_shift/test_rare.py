"""Rare labels: which of their observations are kept, what they add to an importance, and what is named by it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from attributary_explainers import LossMonitor, LossShiftExplained, as_batch, as_loss
from attributary_explainers.loss_shift.rows import KeptRows, Stratum
from attributary_explainers.loss_shift.suspects import suspects
from attributary_explainers.models.function import model_function
from tests.explainers.plain_data import strangers

NAMES, LABELS = ["a", "b", "c", "idle"], ["one", "two", "rare"]
LOSS = as_loss("cross_entropy")


def probabilities(table: Any, level: float = -7.5) -> Any:
    """Return what three classes are worth: the first two by a and b, the rare one by c alone."""
    table = np.asarray(table, dtype=float)
    logits = [np.zeros(len(table)), table[:, 0] - 0.8 * table[:, 1], level + 2.5 * table[:, 2]]
    return softmax(np.column_stack(logits), axis=1)


MODEL = as_batch(probabilities, features=NAMES, classes=LABELS)


def stream(n: int, rng: np.random.Generator, *, permuted: bool = False) -> tuple[Any, list[str]]:
    table = rng.normal(size=(n, 4))
    labels = (rng.random((n, 1)) > probabilities(table).cumsum(axis=1)[:, :-1]).sum(axis=1)
    if permuted:
        table[:, 2] = rng.permutation(table[:, 2])
    return table, [LABELS[i] for i in labels]


def rows_of(table: Any, labels: list[str]) -> list[tuple[dict[str, float], str]]:
    return [(dict(zip(NAMES, x, strict=True)), y) for x, y in zip(table.tolist(), labels, strict=True)]


def fed(rows: KeptRows, first: int, last: int, rare: str = "x") -> None:
    """Every hundredth observation is rare."""
    for i in range(first, last + 1):
        rows.update({"n": float(i)}, rare if i % 100 == 0 else "common")


def numbers(of: list[tuple[dict[str, float], Any]]) -> list[float]:
    return [x["n"] for x, _ in of]


def test_the_newest_of_a_rare_label_are_kept_by_the_side_of_the_onset_they_are_on() -> None:
    rows = KeptRows(60, seed=0)
    fed(rows, 1, 5050)
    assert rows.rare() == []
    rows.begin(4301)
    (stratum,) = rows.rare()
    assert (stratum.label, stratum.share) == ("x", 50 / 5050)
    assert numbers(stratum.before) == [100.0 * i for i in range(21, 44)], "30 of them, half a window"
    assert numbers(stratum.after) == [4400, 4500, 4600, 4700, 4800, 4900, 5000]
    rows.begin(4701)
    assert rows.rare() == [], "three after the onset say nothing"
    rows.end(returned=False)
    fed(rows, 5051, 6000)
    rows.begin(5501)
    (stratum,) = rows.rare()
    assert numbers(stratum.before) == [4800, 4900, 5000, 5100, 5200, 5300, 5400, 5500], (
        "the reference is after the shift"
    )


def test_labels_that_are_frequent_or_too_many_are_not_kept_beside_the_others() -> None:
    often, targets = KeptRows(60, seed=0), KeptRows(60, seed=0)
    for i in range(3000):
        often.update({"n": float(i)}, i % 2)
        targets.update({"n": float(i)}, 0.5 * i)
    for rows in (often, targets):
        rows.begin(2000)
        assert rows.rare() == []
        assert "n" not in rows.snapshot()["_rare"]["state"]["_rows"]["state"].get("names", [])


@pytest.mark.parametrize("at", [3, 350, 2000, 2900])
def test_restored_and_continued_equals_never_stopped(at: int) -> None:
    one = KeptRows(60, seed=3)
    fed(one, 1, at)
    state = one.snapshot()
    assert not strangers(state)
    other = KeptRows.from_snapshot(pickle.loads(pickle.dumps(state)))
    for rows in (one, other):
        fed(rows, at + 1, 3000)
        rows.begin(2301)
    assert one.rare() == other.rare()
    assert repr(one.snapshot()) == repr(other.snapshot())


def test_an_importance_is_that_of_strata_with_fixed_shares() -> None:
    rng = np.random.default_rng(1)
    table, labels = stream(40_000, rng)
    is_rare = np.array(labels) == "rare"
    share = 0.01
    common = rows_of(table[~is_rare][:300], [y for y in labels if y != "rare"][:300])
    rare = rows_of(table[is_rare][:60], ["rare"] * 60)
    few, function = rare[:12], model_function(MODEL, "probabilities")
    found = suspects(function, LOSS, common, common, rare=[Stratum("rare", share, rare, few)], n_permutations=150)
    known = {one.name: one for one in found}
    for j, name in enumerate(NAMES):
        for of, got in ((rare, known[name].importance_before), (few, known[name].importance_after)):
            want = (1.0 - share) * exact(common, common, j) + share * exact(of, common, j)
            assert got == pytest.approx(want, abs=0.004), name
    assert known["c"].importance_before > 0.01, "what counts for the rare label alone"


def exact(rows: list[tuple[dict[str, float], str]], pool: list[tuple[dict[str, float], str]], j: int) -> float:
    """Return the mean rise of the loss over all pairs of a row and of one that it is given the value of."""
    table, drawn = (np.array([list(x.values()) for x, _ in of]) for of in (rows, pool))
    places = [LABELS.index(y) for _, y in rows]

    def loss(of: Any) -> Any:
        return -np.log(probabilities(of)[np.arange(len(of)), places])

    rises = []
    for value in drawn[:, j]:
        given = table.copy()
        given[:, j] = value
        rises.append(loss(given) - loss(table))
    return float(np.mean(rises))


def test_more_of_a_rare_label_change_no_importance() -> None:
    table, labels = stream(60_000, np.random.default_rng(2))
    rows = rows_of(table, labels)
    rare, common = [row for row in rows if row[1] == "rare"], [row for row in rows if row[1] != "rare"]
    before, after = rare[:80], rare[80:280]
    function = model_function(MODEL, "probabilities")
    strata = [Stratum("rare", len(rare) / len(rows), before, after)]
    found = suspects(function, LOSS, common[:900] + before[:2], common[900:1800] + after[:40], rare=strata)
    assert not [one.name for one in found if one.significant]


def test_the_column_that_the_rare_class_alone_reads_is_named() -> None:
    """One of 200 observations is rare, and a window has one or two: without a stratum, nothing is named."""
    named = []
    for seed in range(4):
        rng = np.random.default_rng([5, seed])
        clean, then = stream(20_000, rng), stream(12_000, rng, permuted=True)
        predicted = probabilities(np.vstack([clean[0], then[0]])).tolist()
        monitor = LossMonitor(MODEL, learns=False, window=300)
        for (x, y), p in zip([*rows_of(*clean), *rows_of(*then)], predicted, strict=True):
            events = monitor.update(x, y, dict(zip(LABELS, p, strict=True)))
            told = [one for one in events if isinstance(one, LossShiftExplained)]
            if told:
                named.append((told[0].features[0].name, told[0].features[0].significant))
                break
    assert named.count(("c", True)) >= 3

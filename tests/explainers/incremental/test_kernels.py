"""Kernels equal what they reproduce, compiled and as plain Python; and the package gives the same without numba."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import forest, linear_model, preprocessing, tree

from attributary_explainers import IncrementalPFI, IncrementalSAGE, as_loss
from attributary_explainers.compiled import HAS_NUMBA
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.imputers import kernels as row_kernels
from attributary_explainers.imputers.requests import walked_coalitions
from attributary_explainers.imputers.rows import keep, replace
from attributary_explainers.imputers.stored import StoredRows
from attributary_explainers.imputers.strata import SlotOrder, row_key, strata
from attributary_explainers.incremental import kernels as step_kernels
from attributary_explainers.incremental.coalitions import CoalitionLosses, coalition_losses
from attributary_explainers.incremental.sage import walk
from attributary_explainers.losses import kernels as loss_kernels
from attributary_explainers.smoothing import importance as smoothing
from attributary_explainers.smoothing import influence as influences
from attributary_explainers.smoothing.importance import SmoothedImportance

from ..fast_paths.streams import blobs, line
from ..fast_paths.twins import assert_close

ROOT = Path(__file__).resolve().parents[3]


def as_plain_python(kernel: Any) -> Any:
    return kernel.py_func if HAS_NUMBA else kernel


def as_it_is(kernel: Any) -> Any:
    return kernel


WAYS = pytest.mark.parametrize("way", [as_it_is, as_plain_python])
Way = Callable[[Any], Any]

LOSSES: dict[str, Any] = {
    "cross_entropy": as_loss("cross_entropy"),
    "clipped": as_loss("cross_entropy", epsilon=0.2),
    "brier": as_loss("brier"),
    "absolute": as_loss("absolute"),
    "squared": as_loss("squared"),
    "score": as_loss("score"),
}


def predictions_of(loss: Any, rows: int, rng: np.random.Generator, n_classes: int = 3) -> tuple[Any, tuple[Any, ...]]:
    """Predictions as an evaluator gives them, and the labels of the columns; some are certain, some rows are equal."""
    if loss.output == "number":
        P = rng.normal(size=(rows, 1)) * 3.0
    else:
        P = rng.dirichlet(np.full(n_classes, 0.5), size=rows)
        P[rng.random(rows) < 0.2] = np.eye(n_classes)[0]
    P[rng.random(rows) < 0.2] = P[0]
    return P, tuple("abcdef"[:n_classes])


def as_predictions(loss: Any, P: Any, labels: tuple[Any, ...]) -> list[Any]:
    if loss.output == "number":
        return [row[0] for row in P.tolist()]
    return [dict(zip(labels, row, strict=True)) for row in P.tolist()]


def target_of(loss: Any, labels: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, int, float]:
    """A label or target, with its column and number as the kernels want them; sometimes a label not known."""
    if loss.output == "number":
        y = float(rng.normal()) * 3.0
        return y, 0, y
    k = int(rng.integers(len(labels) + 1))
    return (labels[k], k, 0.0) if k < len(labels) else ("never seen", -1, 0.0)


@WAYS
@pytest.mark.parametrize("name", list(LOSSES))
def test_losses_and_their_growth(name: str, way: Way) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(1)
    for _ in range(60):
        k, n, start = (int(v) for v in rng.integers(1, 6, size=3))
        P, labels = predictions_of(loss, start + k * n + 2, rng)
        y, column, target = target_of(loss, labels, rng)
        losses = [loss(y, prediction) for prediction in as_predictions(loss, P, labels)]
        reading = loss.code, loss.epsilon, column, target
        assert [way(loss_kernels.loss_of)(P, r, *reading) for r in range(len(P))] == pytest.approx(losses, abs=1e-14)
        growth, means = np.full((k, n), 7.0), np.full(k, 7.0)
        status, own, low, high = way(loss_kernels.pfi_growth)(P, start, *reading, growth, means)
        expected = np.array(losses[start : start + k * n]).reshape(k, n) - losses[0]
        assert status == 0
        assert np.abs(growth - expected).max() <= 1e-13 * max(1.0, np.abs(losses).max())
        assert np.abs(means - expected.mean(axis=1)).max() <= 1e-13 * max(1.0, np.abs(losses).max())
        seen = [losses[0], *losses[start : start + k * n]]
        assert (own, low, high) == pytest.approx((losses[0], min(seen), max(seen)), abs=1e-13)
        # Exactly 0 where a draw changes nothing.
        assert all(growth.ravel()[(P[start : start + k * n] == P[0]).all(axis=1)] == 0.0)


@WAYS
def test_what_is_no_prediction(way: Way) -> None:
    for bad in (math.nan, math.inf, -math.inf):
        for row in range(8):
            P = np.full((8, 2), 0.5)
            P[row, row % 2] = bad
            inside = row == 0 or 2 <= row < 6
            assert way(loss_kernels.finite_rows)(P, 2, 6) == (not inside)
            growth, means = np.zeros((2, 2)), np.zeros(2)
            assert way(loss_kernels.pfi_growth)(P, 2, 2, 0.1, 0, 0.0, growth, means)[0] == int(inside)
    assert not way(loss_kernels.finite_rows)(np.zeros((4, 0)), 1, 4)
    assert way(loss_kernels.finite_rows)(np.zeros((4, 1)), 1, 4)
    huge = np.array([[0.0], [1e160]])
    assert way(loss_kernels.pfi_growth)(huge, 1, 3, 0.1, 0, 0.0, np.zeros((1, 1)), np.zeros(1))[0] == 2
    for order in ([1e160, 1.0, 2.0], [1.0, 1e160, 2.0], [1.0, 2.0, 1e160]):
        P = np.array([[0.0], *([value] for value in order)])
        assert way(loss_kernels.pfi_growth)(P, 1, 3, 0.1, 0, 0.0, np.zeros((3, 1)), np.zeros(3))[0] == 2


@WAYS
@pytest.mark.parametrize("variance", [None, 0.0, 0.01, 1.0])
@pytest.mark.parametrize("name", list(LOSSES))
def test_coalitions_and_walks(name: str, variance: float | None, way: Way) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(2)
    for n in (2, 3, 4, 5, 10):
        for n_orders in (1, 3):
            k, start = int(rng.integers(1, 6)), int(rng.integers(1, 4))
            size = n_orders * (k - 1)
            P, labels = predictions_of(loss, start + size * n, rng)
            y, column, target = target_of(loss, labels, rng)
            reading = loss.code, loss.epsilon, column, target
            plain, losses = np.full((2, size), 7.0)
            sway = np.full((size, n), 7.0)
            bias = variance is not None, variance or 0.0, loss.most_bias
            way(loss_kernels.coalitions)(P, start, n, *reading, *bias, plain, losses, sway)
            expected = coalition_losses(loss, y, as_predictions(loss, P[start:], labels), n, variance)
            assert expected is not None
            assert_close(plain.tolist(), expected.plain, name)
            assert_close(losses.tolist(), expected.losses, name)
            if size:
                assert expected.sway is not None
                assert_close(sway.tolist(), expected.sway.tolist(), name)
                if expected.plain != expected.losses:
                    assert variance is not None
            orders = np.array([rng.permutation(k) for _ in range(n_orders)])
            increments, parts = np.full(k, 7.0), np.full((k, n), 7.0)
            way(loss_kernels.walked)(orders, 1.5, 0.25, losses, sway, increments, parts)
            by_name = [["abcdef"[i] for i in order] for order in orders.tolist()]
            if not size:
                expected = CoalitionLosses([], [], None)
            shares, parts_of = walk("abcdef"[:k], by_name, 1.5, 0.25, expected)
            assert_close(increments.tolist(), list(shares.values()), name)
            if parts_of is not None:
                assert_close(parts.tolist(), parts_of.tolist(), name)
            assert sum(increments) == pytest.approx(1.25, abs=1e-12)


def some_state(width: int, n_slots: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """What there may be after some observations, with room for one more feature that nothing may touch."""
    return rng.normal(size=(3, width)), rng.normal(size=(step_kernels.LIVE + n_slots, width + 1))


@WAYS
@pytest.mark.parametrize("name", list(LOSSES))
def test_a_step_of_pfi_is_its_parts(name: str, way: Way) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(6)
    for n_seen in (1, 2, 9):
        k, n, start, width, n_slots = 3, 4, 2, 5, 7
        P, labels = predictions_of(loss, start + k * n, rng)
        _, column, target = target_of(loss, labels, rng)
        reading = loss.code, loss.epsilon, column, target
        columns, slots = rng.permutation(width)[:k], rng.integers(n_slots, size=(k, n))
        moments, table = some_state(width, n_slots, rng)
        expected = moments.copy(), table.copy()
        growth, means = np.zeros((k, n)), np.zeros(k)
        found = loss_kernels.pfi_growth(P, start, *reading, growth, means)
        step_kernels.smooth(0.3, columns, means, growth, slots, n_seen, width, *expected)
        step = way(step_kernels.pfi_step)
        assert step(P, start, *reading, 0.3, columns, slots, n_seen, width, moments, table) == pytest.approx(found)
        assert_close(moments.tolist(), expected[0].tolist(), name)
        assert_close(table.tolist(), expected[1].tolist(), name)
        before = moments.copy(), table.copy()
        P[start + 1, 0] = math.nan
        found = step(P, start, *reading, 0.3, columns, slots, n_seen, width, moments, table)
        assert found[0] == step_kernels.NO_PREDICTION
        assert np.array_equal(moments, before[0])
        assert np.array_equal(table, before[1])


@WAYS
@pytest.mark.parametrize("name", list(LOSSES))
def test_a_step_of_sage_is_its_parts(name: str, way: Way) -> None:
    loss, rng = LOSSES[name], np.random.default_rng(7)
    for k, n_orders, n_seen in ((3, 1, 5), (3, 2, 2), (1, 1, 4), (4, 3, 1)):
        n, start, width, n_slots = 4, 2, 5, 7
        size = n_orders * (k - 1)
        P, labels = predictions_of(loss, start + size * n, rng)
        _, column, target = target_of(loss, labels, rng)
        reading = loss.code, loss.epsilon, column, target
        orders = np.array([rng.permutation(k) for _ in range(n_orders)])
        columns, slots = rng.permutation(width)[:k], rng.integers(n_slots, size=n)
        moments, table = some_state(width, n_slots, rng)
        expected, before = (moments.copy(), table.copy()), (moments.copy(), table.copy())
        bias = True, 0.01, loss.most_bias
        plain, losses, sway = np.zeros(size), np.zeros(size), np.zeros((size, n))
        loss_kernels.coalitions(P, start, n, *reading, *bias, plain, losses, sway)
        increments, parts = np.zeros(k), np.zeros((k, n))
        loss_kernels.walked(orders, 1.5, 0.25, losses, sway, increments, parts)
        step_kernels.smooth(
            0.3, columns, increments, parts if size else np.zeros((k, 0)), slots[None], n_seen, width, *expected
        )

        def step(largest: float, own: float = 0.25, given: Any = (P, start, *reading, *bias, orders)) -> Any:
            state = 0.3, columns, slots[None], n_seen, width, moments, table  # noqa: B023 - called within the turn
            return way(step_kernels.sage_step)(*given, 1.5, own, largest, *state)

        assert step(1e-9)[0] == step_kernels.NOT_FINITE
        assert step(1e150, math.nan)[0] == step_kernels.NOT_FINITE
        P[start - 2, 0], kept = math.inf, P[start - 2, 0]
        assert step(1e150)[0] == step_kernels.NO_PREDICTION
        P[start - 2, 0] = kept
        assert np.array_equal(moments, before[0])
        assert np.array_equal(table, before[1])
        assert step(1e150) == pytest.approx((step_kernels.DONE, min([0.25, *plain]), max([1.5, *plain])))
        assert_close(moments.tolist(), expected[0].tolist(), name)
        assert_close(table.tolist(), expected[1].tolist(), name)


def test_the_bias_is_somewhere_subtracted() -> None:
    """That the comparison above compares something."""
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1.0, 1.0], size=5)
    plain, losses, sway = np.zeros(1), np.zeros(1), np.zeros((1, 4))
    loss_kernels.coalitions(P, 1, 4, 2, 0.1, 0, 0.0, True, 0.01, math.inf, plain, losses, sway)
    assert losses[0] < plain[0] - 1e-4


def kernels_as_plain_python(monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    for name in ("smooth", "stored_in"):
        monkeypatch.setattr(influences, name, way(getattr(step_kernels, name)))


@WAYS
@pytest.mark.parametrize(("alpha", "n_slots"), [(0.1, 4), (1.0, 3), (0.003, 6)])
def test_smoothing(alpha: float, n_slots: int, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that come and go and are forgotten; draws that are shared, of each player, or of no slot."""
    kernels_as_plain_python(monkeypatch, way)
    monkeypatch.setattr(smoothing, "memory_of", lambda alpha: 25)
    rng = np.random.default_rng(4)
    compiled, plain = SmoothedImportance(alpha, n_slots), SmoothedImportance(alpha, n_slots)

    def both(do: Callable[[SmoothedImportance], None]) -> None:
        for smoothed, has_numba in ((compiled, True), (plain, False)):
            monkeypatch.setattr(smoothing, "HAS_NUMBA", has_numba)
            monkeypatch.setattr(influences, "HAS_NUMBA", has_numba)
            do(smoothed)

    known: set[int] = set()
    for step in range(160):
        pool = np.arange(6) + step // 40 * 3
        names = tuple(rng.permutation(pool)[: rng.integers(1, 6)].tolist()) if step % 3 else tuple(pool[:4].tolist())
        known |= set(names)
        k, n = len(names), int(rng.integers(1, 5))
        parts = rng.normal(size=(k, n)) * 2.0
        increments = parts.mean(axis=1)
        how = step % 5
        slots = None if how == 4 else rng.integers(n_slots, size=(k, n) if how % 2 else n)
        given_parts = None if how == 3 else parts
        slot = None if step % 7 == 6 else int(rng.integers(n_slots))

        def update(
            smoothed: SmoothedImportance,
            args: Any = (names, increments, given_parts, slots),
            slot: int | None = slot,
            twice: bool = step % 11 != 10,
        ) -> None:
            smoothed.update_arrays(*args)
            smoothed.counted()
            if twice:
                smoothed.stored(slot)

        both(update)
        where = f"step {step}"
        assert_close(compiled.mean(), plain.mean(), where)
        assert_close(compiled.raw_mean(), plain.raw_mean(), where)
        assert_close(compiled.std_error(), plain.std_error(), where)
        states = [smoothed.influence for smoothed in (compiled, plain)]
        assert all(state is not None for state in states)
        assert_close(*(state.variance().tolist() for state in states), where)  # type: ignore[union-attr]
        assert_close(*(state._live.tolist() for state in states), where)  # type: ignore[union-attr]
        assert_close(*(smoothed.moments[2].tolist() for smoothed in (compiled, plain)), where)
        assert compiled.snapshot().keys() == plain.snapshot().keys()
    assert len(compiled.mean()) < len(known), "nothing has been forgotten"


def test_the_room_of_forgotten_names_stays_in_one_order_of_memory() -> None:
    """Another order would be compiled for anew, in the middle of a stream."""
    influence = influences.RowInfluence(4)
    influence.grow(6)
    influence.select(np.array([0, 2, 5]))
    assert influence.table.flags.c_contiguous
    influence.grow(4)
    assert influence.table.flags.c_contiguous


values = st.sampled_from([-1.5, -1.0, 0.0, -0.0, 0.5, 1.0, 2.0])
operations = st.lists(st.tuples(st.integers(0, 5), values, values), min_size=1, max_size=40)


@WAYS
@settings(max_examples=60)
@given(operations=operations)
def test_slots_stay_in_the_order_of_their_values(operations: list[tuple[int, float, float]], way: Way) -> None:
    size = 6
    matrix, order = np.zeros((size, 2)), np.zeros((2, size), dtype=np.int64)
    orders = [SlotOrder(), SlotOrder()]
    n = 0
    for wanted, *row in operations:
        slot = min(wanted, n)
        new = slot == n
        encoded = np.array(row)
        way(row_kernels.put)(slot, new, n, encoded, encoded, matrix, matrix, order)
        n += new
        for j, of_feature in enumerate(orders):
            of_feature.put(slot, (row[j],))
            assert order[j, :n].tolist() == of_feature.slots()
        assert matrix[slot].tolist() == row


categories = st.sampled_from(["b", "a", "", "c", 1, 0, 2.5, True, "10", "9", -3])
stored_rows = st.lists(st.tuples(st.integers(0, 4), categories, values), min_size=1, max_size=30)


@settings(max_examples=60)
@given(operations=stored_rows)
def test_stored_rows_follow_the_reservoir(operations: list[tuple[int, Any, float]]) -> None:
    """Categories in the order of their names whatever their codes; what cannot be encoded is waited out."""
    schema = Schema(("k", "n"), ["k"])
    stored, rows = StoredRows(schema, 5, []), []
    for wanted, k, number in operations:
        slot, row = min(wanted, len(rows)), {"k": k, "n": number}
        rows[slot : slot + 1] = [row]
        stored.put(slot, row)
        if stored.is_stale:
            stored = StoredRows(schema, 5, rows)
        types: dict[Any, set[type]] = {}
        for one in schema.values(0):
            types.setdefault(one, set()).add(type(one))
        holds = all(type(row["k"]) in types.get(row["k"], ()) for row in rows)
        assert stored.is_complete == holds
        if not holds:
            continue
        assert stored.n == len(rows)
        for j, feature in enumerate(schema.features):
            order = SlotOrder()
            for i, one in enumerate(rows):
                order.put(i, row_key(one, (feature,)))
            assert stored.order[j, : stored.n].tolist() == order.slots()
        decoded = [schema.decode(one, ("k", "n")) for one in stored.matrix[: stored.n]]
        assert decoded == rows
        anew = StoredRows(schema, 5, rows)
        assert np.array_equal(anew.order[:, : anew.n], stored.order[:, : stored.n])


@WAYS
def test_spread_draws(way: Way) -> None:
    rng = np.random.default_rng(5)
    for n_stored in (1, 2, 3, 7, 50):
        for n in (1, 2, 5, 10):
            k, seed = 4, int(rng.integers(1000))
            order = np.array([rng.permutation(n_stored) for _ in range(k + 1)])
            columns = rng.permutation(k + 1)[:k]
            expected = strata(n_stored, n, np.random.default_rng(seed), (k,))
            u, slots = np.random.default_rng(seed).random((k, n)), np.full((k, n), -1)
            way(row_kernels.spread_slots)(u, n_stored, columns, order, slots)
            for i in range(k):
                assert slots[i].tolist() == order[columns[i]][expected[i]].tolist()
    slots = np.full((1, 3), -1)
    way(row_kernels.spread_slots)(np.full((1, 3), 1.0), 3, np.array([0]), np.array([[2, 0, 1]]), slots)
    assert slots.tolist() == [[0, 1, 1]], "never beyond the last one"


@WAYS
def test_rows(way: Way) -> None:
    rng = np.random.default_rng(6)
    schema = Schema("abcd")
    rows = [{name: float(rng.normal()) for name in "dacb"} for _ in range(6)]
    x, reservoir = rows[0], rows[1:]
    matrix = schema.encode_many(reservoir)
    players = {name: (name,) for name in "cadb"}
    columns = np.array([schema.position[name] for name in players])
    slots = rng.integers(5, size=(4, 3))
    X = np.full((20, 4), 7.0)
    X[0] = schema.encode(x)
    way(row_kernels.replaced)(4, columns, slots, matrix, X)
    expected = [replace(x, (name,), reservoir[s]) for name, of in zip(players, slots, strict=True) for s in of]
    assert np.array_equal(X[4:16], schema.encode_many(expected))
    assert (X[1:4] == 7.0).all()
    assert (X[16:] == 7.0).all()

    u, order = rng.random((4, 3)), np.array([rng.permutation(5) for _ in range(4)])
    again, found, at_once = np.zeros((4, 3), np.int64), np.zeros((4, 3), np.int64), X.copy()
    way(row_kernels.spread_slots)(u, 5, columns, order, again)
    way(row_kernels.replaced)(2, columns, again, matrix, X)
    way(row_kernels.spread_and_replaced)(u, 5, columns, order, found, 2, matrix, at_once)
    assert np.array_equal(found, again)
    assert np.array_equal(X, at_once)

    orders, shared = np.array([rng.permutation(4) for _ in range(2)]), rng.integers(5, size=3)
    X = np.full((22, 4), 7.0)
    X[0] = schema.encode(x)
    way(row_kernels.kept)(2, orders, columns, shared, matrix, X)
    expected = [
        keep(x, coalition, reservoir[s], players)
        for coalition in walked_coalitions(list(players), orders)
        for s in shared
    ]
    assert np.array_equal(X[2:20], schema.encode_many(expected))
    assert (X[20:] == 7.0).all()
    assert (X[1] == 7.0).all()


def importances() -> dict[str, Any]:
    """What PFI and SAGE say of three models at three moments, and how often by the fast path."""
    found: dict[str, Any] = {}
    made: dict[str, tuple[Any, Any]] = {
        "forest": (forest.ARFClassifier(n_models=3, seed=1, grace_period=20), blobs(90)),
        "tree": (tree.HoeffdingTreeClassifier(grace_period=20), blobs(90, labels=(True, False))),
        "logistic": (preprocessing.StandardScaler() | linear_model.LogisticRegression(), blobs(60, labels=(0, 1))),
        "linear": (preprocessing.StandardScaler() | linear_model.LinearRegression(), line(60)),
    }
    for name, (model, stream) in made.items():
        shared: dict[str, Any] = {"n_samples": 4, "alpha": 0.05, "seed": 3}
        explainers = {
            "pfi": IncrementalPFI(model, **shared),
            "sage": IncrementalSAGE(model, n_permutations=2, **shared),
            "independent": IncrementalPFI(model, sampling="independent", **shared),
        }
        for step, (x, y) in enumerate(stream):
            for key, explainer in explainers.items():
                explainer.explain_one(x, y)
                if step % 20 == 19:
                    said = [explainer.importance, explainer.std_error, explainer.n_observations]
                    found[f"{name}, {key}, {step}"] = said
            model.learn_one(x, y)
    return found


SCRIPT = """
import json
from attributary_explainers.evaluation import compiled
assert not compiled.HAS_NUMBA
from tests.explainers.evaluation.test_kernels import importances
print(json.dumps(importances()))
"""


@pytest.mark.skipif(not HAS_NUMBA, reason="this process has no numba to compare with")
@pytest.mark.filterwarnings("ignore::attributary_explainers.errors.NaivePathWarning")
def test_the_same_without_numba() -> None:
    paths = [str(ROOT / folder) for folder in ("explainers", "topics", "agents", ".")]
    environment = {**os.environ, "ATTRIBUTARY_NUMBA": "0", "PYTHONPATH": os.pathsep.join(paths)}
    environment["PYTHONWARNINGS"] = "ignore"
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    without, here = json.loads(done.stdout), json.loads(json.dumps(importances()))
    assert len(here) == 2 * 3 * 4 + 2 * 3 * 3
    assert_close(without, here, "without numba")

"""The exact values of `make calibration`, each found in a second way; its streams, its verdicts, its command."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from benchmarks.calibration import __main__ as command
from benchmarks.calibration.rules import BITS, RULES
from benchmarks.calibration.runs import ALL, PARTS, Cell, Record, as_data, from_data, full, measure, quick, run
from benchmarks.calibration.verdicts import Row, rows_of
from benchmarks.calibration.worlds import AUTOREGRESSIVE, REGIMES, SEASONS, World

from attributary_explainers import batch_pfi
from attributary_explainers.models.function import model_function

pytestmark = pytest.mark.long

Array = npt.NDArray[np.float64]
BLOCKS, STREAM, ROWS, DRAWS = 20, 50_000, 1500, 100

LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "squared": lambda y, p: (y - p) ** 2,
    "absolute": lambda y, p: np.abs(y - p),
    "cross_entropy": lambda y, p: -np.where(y > 0.5, np.log(p), np.log(1.0 - p)),
    "zero_one": lambda y, p: (y != (p > 0.5)).astype(np.float64),
    "expected_zero_one": lambda y, p: np.where(y > 0.5, 1.0 - p, p),
}
"""Written once more, of a target and the mean prediction, which is the probability of True or a number."""

PRECISE = [AUTOREGRESSIVE[0], AUTOREGRESSIVE[4], AUTOREGRESSIVE[8], *REGIMES, *SEASONS, *RULES]
"""One of every population, model and loss: exact values do not depend on rho."""


def within_blocks(found: Array, exact: Array) -> None:
    """The mean over independent blocks is the exact value, within four of its standard errors, which are small."""
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - exact) < 4.0 * error + 1e-9).all(), (found.mean(axis=0), exact, error)
    assert (error < 0.05 * np.abs(exact).max()).all(), (error, exact)


def blocks(world: World, seed: int) -> Iterator[tuple[np.random.Generator, Array]]:
    """A stream of its own for each block, its rows in an order that no longer says when they were."""
    for block in range(BLOCKS):
        rng = np.random.default_rng([seed, block])
        yield rng, rng.permutation(world.rows(rng, STREAM))


@pytest.mark.parametrize("world", PRECISE, ids=lambda world: world.name)
def test_exact_pfi_is_that_of_shuffled_rows_of_the_stream(world: World) -> None:
    predict, loss = world.formula.function, LOSSES[world.loss]
    found = []
    for rng, X in blocks(world, seed=2):
        y = np.array(world.target.draw(rng, X), dtype=np.float64)
        base = loss(y, predict(X)).mean()
        found.append([])
        for j in range(X.shape[1]):
            replaced = X.copy()
            replaced[:, j] = rng.permutation(X[:, j])
            found[-1].append(loss(y, predict(replaced)).mean() - base)
    within_blocks(np.array(found), np.array(list(world.exact("pfi").values())))


@pytest.mark.parametrize("world", PRECISE, ids=lambda world: world.name)
def test_exact_sage_is_that_of_many_draws_from_the_stream(world: World) -> None:
    predict, loss = world.formula.function, LOSSES[world.loss]
    found = []
    for rng, rows in blocks(world, seed=3):
        X, Z, d = rows[:ROWS], rows[-DRAWS:], rows.shape[1]
        y = np.array(world.target.draw(rng, X), dtype=np.float64)
        lost = {}
        for kept in (frozenset(s) for size in range(d + 1) for s in combinations(range(d), size)):
            drawn = np.broadcast_to(Z, (ROWS, DRAWS, d)).copy()
            for j in kept:
                drawn[:, :, j] = X[:, None, j]
            lost[kept] = loss(y, predict(drawn.reshape(-1, d)).reshape(ROWS, DRAWS).mean(axis=1)).mean()
        gains = np.zeros(d)
        for order in permutations(range(d)):
            for at, j in enumerate(order):
                gains[j] += lost[frozenset(order[:at])] - lost[frozenset(order[: at + 1])]
        found.append(gains / math.factorial(d))
    within_blocks(np.array(found), np.array(list(world.exact("sage").values())))


def test_exact_values_of_a_rule_that_can_be_worked_out_by_hand() -> None:
    """a or b or c, without noise: replacing a changes the rule where b = c = 0 and the two values of a differ."""
    label = next(world for world in RULES if world.name == "a or b or c, absolute")
    a, b, c, _ = next(bits.shares for bits in BITS if bits.name == "a or b or c")
    changes = [
        2 * a * (1 - a) * (1 - b) * (1 - c),
        2 * b * (1 - b) * (1 - a) * (1 - c),
        2 * c * (1 - c) * (1 - a) * (1 - b),
    ]
    assert list(label.exact("pfi").values()) == pytest.approx([*changes, 0.0], abs=1e-12)
    # Efficiency: the loss of the mean prediction, of which the model itself has none.
    true = 1 - (1 - a) * (1 - b) * (1 - c)
    assert sum(label.exact("sage").values()) == pytest.approx(2 * true * (1 - true), abs=1e-12)
    assert label.exact("sage")["d"] == 0.0


@pytest.mark.parametrize("world", [*AUTOREGRESSIVE[:4], *REGIMES[:1], *SEASONS[:1]], ids=lambda world: world.name)
def test_a_stream_depends_on_itself_as_its_name_says(world: World) -> None:
    X = world.rows(np.random.default_rng(8), 200_000)
    j = world.formula.features.index({"AR": "load", "re": "flow", "se": "demand"}[world.name[:2]])
    x = (X[:, j] - X[:, j].mean()) / X[:, j].std()

    def correlation(lag: int) -> float:
        return float((x[lag:] * x[:-lag]).mean())

    if world in AUTOREGRESSIVE:
        assert X[:, j].std() == pytest.approx(1.0, abs=0.1)
        assert np.corrcoef(X[:, j], X[:, j + 1])[0, 1] == pytest.approx(0.6, abs=0.1)
        assert correlation(1) == pytest.approx(world.rows.rho, abs=0.02)  # type: ignore[attr-defined]
    elif world in REGIMES:
        # A state is kept over k rows with the probability (1 - 1/300)^k; a third of those left is returned to.
        left = correlation(300) / correlation(1)
        assert left == pytest.approx(np.exp(-4.0 / 3.0), abs=0.06)
    else:
        assert correlation(1440) == pytest.approx(-correlation(720), abs=0.01)
        assert correlation(1440) == pytest.approx(0.5 / 1.5, abs=0.01)


@pytest.mark.parametrize("world", [AUTOREGRESSIVE[0], AUTOREGRESSIVE[4], *REGIMES, *RULES[:2]], ids=lambda w: w.name)
def test_the_fast_path_of_a_formula_gives_what_the_model_gives(world: World) -> None:
    observations, _ = world.draw(np.random.default_rng(3), 50)
    output = "number" if "predict_proba_one" not in dir(world.model) else "probabilities"
    output = "label" if world.loss.endswith("zero_one") else output
    function = model_function(world.model, output)
    assert function.many(observations) == [  # type: ignore[attr-defined]
        pytest.approx(function(x)) for x in observations
    ]
    assert function.n_naive == 0  # type: ignore[attr-defined]


def test_pfi_of_the_product_on_a_table_is_the_exact_one() -> None:
    """The model, its text and its target are the product's own: `batch_pfi` on shuffled rows of the regimes."""
    world = REGIMES[1]
    rng = np.random.default_rng(6)
    observations, targets = world.draw(rng, 400_000)
    chosen = rng.choice(len(observations), 4000, replace=False)
    found = batch_pfi(world.model, [(observations[i], targets[i]) for i in chosen], loss=world.loss, seed=1)
    exact = world.exact("pfi")
    assert found.importance == pytest.approx(exact, abs=0.15 * max(exact.values()))


def record(**given: Any) -> Record:
    usual = {
        "part": "dependent", "world": "AR 0.9, squared", "loss": "squared", "explainer": "pfi", "alpha": 0.005,
        "n": 1000, "feature": "load", "runs": 400, "exact": 1.0, "mean": 1.01, "sd": 0.1, "error": 0.1, "held": 0.95,
        "said": 0.0,
    }  # fmt: skip
    return Record(**{**usual, **given})


def verdict(what: str, *records: Record) -> Row:
    return next(row for row in rows_of(records) if row.what.startswith(what))


@pytest.mark.parametrize(("held", "reached"), [(0.919, False), (0.92, True), (0.985, True), (0.99, False)])
def test_a_line_is_reached_where_every_cell_is(held: float, reached: bool) -> None:
    row = verdict("AR(1), rho 0 to .9, iPFI, squared", record(), record(feature="tilt", held=held))
    assert row.reached is reached
    assert ("1 of 2 outside" in row.found) is not reached


@pytest.mark.parametrize(("held", "said", "reached"), [(0.88, 0.0, True), (0.7, 0.2, False), (0.7, 0.9, True)])
def test_at_99_an_interval_holds_less_or_the_feature_is_named(held: float, said: float, reached: bool) -> None:
    row = verdict("AR(1), rho .99, iPFI, squared", record(world="AR 0.99, squared", held=held, said=said))
    assert row.reached is reached


def test_wide_intervals_bias_and_z_are_judged() -> None:
    assert verdict("AR(1), all", record(), record(error=0.131)).reached is False
    assert verdict("AR(1), all", record(), record(error=0.129)).reached is True
    regime = {"part": "regimes", "world": "regimes, squared"}
    assert verdict("regimes of 300, iPFI", record(**regime, mean=0.95)).reached is True
    assert verdict("regimes of 300, iPFI", record(**regime, mean=0.93)).reached is False
    rule = {"part": "rules", "world": "a or b, label", "explainer": "sage", "exact": 0.0, "runs": 25}
    assert verdict("rules of bits, iSAGE, default", record(**rule, mean=0.05)).reached is True
    assert verdict("rules of bits, iSAGE, default", record(**rule, mean=-0.07)).reached is False


def test_what_was_not_run_has_no_verdict() -> None:
    assert {row.reached for row in rows_of([])} == {None}
    assert {row.found for row in rows_of([])} == {"not run"}


def test_runs_do_not_depend_on_the_number_of_processes_and_are_kept_as_data() -> None:
    cells = [Cell("dependent", "AR 0.5, squared", 0.02, (60, 120), ("pfi", "sage"), 3)]
    alone, two = measure(cells, 1), measure(cells, 2)
    assert alone == two == from_data(json.loads(json.dumps(as_data(alone))))
    assert len(alone) == 2 * 2 * 3
    first = np.array([run((cells[0], seed)) for seed in range(3)])[:, 1, 0, 1, 0]
    found = next(r for r in alone if (r.n, r.explainer, r.feature) == (120, "pfi", "load"))
    assert (found.mean, found.sd) == (pytest.approx(first.mean()), pytest.approx(first.std(ddof=1)))


def test_the_plan_has_all_cells_of_the_table() -> None:
    dependent = {cell.world for cell in full() if cell.part == "dependent"}
    assert len(dependent) == 12
    assert all(cell.runs == 400 and min(cell.read_at) >= 5 / cell.alpha for cell in full() if cell.part == "dependent")
    assert {cell.part for cell in quick()} == set(PARTS)
    assert {cell.world for cell in full()} == set(ALL)


def test_the_last_lines_are_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = [replace(cell, read_at=(300,), alpha=0.02) for cell in quick() if cell.world == RULES[1].name]
    monkeypatch.setattr(command, "quick", lambda: small)
    file = tmp_path / "found.json"
    arguments = ["--quick", "--runs", "2", "--only", "rules", "--jobs", "1", "--json", str(file)]
    assert command.main([*arguments, "--markdown"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert lines[-1].startswith("| cost of an observation | make speed |")
    line = next(line for line in lines if "iSAGE, absolute loss" in line)
    assert " z up to " in line
    assert command.main(["--read", str(file), "--markdown"]) == 0
    assert line in capsys.readouterr().out

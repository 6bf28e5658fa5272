"""ReliabilityTables and Bets against naive sums of the same rows, and on streams at any base rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from attributary_explainers.loss_shift.law import Recalibration, level_of
from attributary_explainers.loss_shift.tables import (
    GRID,
    LEAST_EVENTS,
    N_BINS,
    N_FIRST,
    Bets,
    Passed,
    ReliabilityTables,
    edges_of,
)


def run(
    p: np.ndarray, y: np.ndarray, tables: ReliabilityTables | None = None, once_in: float = 1e6
) -> tuple[ReliabilityTables, list[tuple[int, Passed]]]:
    """Take in rows, in blocks as they end; a test that passes makes its window the reference."""
    tables = tables or ReliabilityTables(edges_of(p[:N_FIRST]), once_in)
    found = []
    for number, (one, label) in enumerate(zip(p.tolist(), y.tolist(), strict=True), start=1):
        if tables.block.add(one, label) and (passed := tables.end_block(number)) is not None:
            found.append((number, passed))
            tables.restart(passed.window, 1, number)
    return tables, found


def drawn(n: int, rate: float, seed: int = 1, slope: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and labels of a model whose logits mean slope * logit."""
    rng = np.random.default_rng([seed, n])
    x = 1.3 * rng.normal(size=n)
    base = math.log(rate / (1.0 - rate))
    return expit(base + x), rng.random(n) < expit(base + slope * x)


def test_sums_are_those_of_all_rows() -> None:
    p, y = drawn(20_000, 0.1)
    tables, found = run(p, y)
    assert not found
    bins = np.searchsorted(tables.edges, np.log(p / (1.0 - p)), side="right")
    whole = tables.now.table + tables.block.table
    naive = np.array([np.bincount(bins, of, N_BINS) for of in (np.ones(len(p)), p, y)])
    assert whole == pytest.approx(naive)
    assert sum(tables.n_events) == 20_000
    for mark in tables.marks.values():
        naive = np.array(
            [np.bincount(bins[: mark.number], of[: mark.number], N_BINS) for of in (np.ones(len(p)), p, y)]
        )
        assert mark.sums.table == pytest.approx(naive)


def test_a_copy_is_kept_of_where_each_window_began_as_often_as_a_quarter_of_it_has_come() -> None:
    p, y = drawn(60_000, 0.3)
    tables = ReliabilityTables(edges_of(p[:N_FIRST]), 1e6)
    for number, (one, label) in enumerate(zip(p.tolist(), y.tolist(), strict=True), start=1):
        if tables.block.add(one, label):
            assert tables.end_block(number) is None
            for j in range(11):
                start = tables.n - 2**j
                assert start < 1 or tables.n % max(1, 2**j // 4) or start in tables.marks
    assert len(tables.marks) <= 30


def test_bins_have_like_shares_of_rows_and_of_information() -> None:
    p, _ = drawn(4000, 0.01)
    edges = edges_of(p)
    assert (np.diff(edges) >= 0.0).all()
    bins = np.searchsorted(edges, np.log(p / (1.0 - p)), side="right")
    information = p * (1.0 - p) / (p * (1.0 - p)).sum()
    shares = [0.5 * ((bins == k).mean() + information[bins == k].sum()) for k in range(N_BINS)]
    assert shares == pytest.approx([1.0 / N_BINS] * N_BINS, abs=0.02)


@pytest.mark.parametrize("rate", [0.5, 1e-2, 1e-3])
def test_a_block_ends_when_it_has_information_enough(rate: float) -> None:
    p, y = drawn(40_000, rate)
    tables, _ = run(p, y)
    marks = [tables.marks[n].number for n in sorted(tables.marks)][-3:]
    information = np.r_[0.0, np.cumsum(p * (1.0 - p))]
    for first, last in pairwise(marks):
        assert information[last] - information[first] >= 2.0 - 1e-9
        is_just_enough = information[last - 1] - information[first] < 2.0
        assert is_just_enough or last - first == 128


@pytest.mark.parametrize("rate", [0.5, 1e-2, 3e-4])
@pytest.mark.parametrize("slope", [0.5, 1.0, 2.0])
def test_nothing_passes_where_nothing_happens_whatever_the_calibration_is(rate: float, slope: float) -> None:
    assert not run(*drawn(30_000, rate, slope=slope, seed=11))[1]


def issue(seed: int, n: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = scale * np.exp(rng.normal(size=n) - 0.5)
    return p, rng.random(n) < p


def test_a_model_that_is_right_about_one_in_ten_thousand_is_not_told_to_be_worse() -> None:
    for seed in range(2):
        tables, found = run(*issue(seed, 100_000, 1e-4))
        assert not found
        assert tables.n_events[0] < 2 * LEAST_EVENTS


@pytest.mark.long
@pytest.mark.parametrize("scale", [1e-4, 3e-4])
def test_twelve_streams_of_a_right_model_with_rare_positives_pass_no_test(scale: float) -> None:
    assert [len(run(*issue(seed, 200_000, scale))[1]) for seed in range(12)] == [0] * 12


def test_too_few_positives_are_not_judged() -> None:
    p, y = drawn(8000, 0.2)
    y[np.flatnonzero(y)[LEAST_EVENTS - 1 :]] = False  # the last 29 positives of all
    tables, found = run(p, y)
    assert not found
    assert not tables.is_armed
    assert tables.n_events[0] == LEAST_EVENTS - 1


@pytest.mark.parametrize(
    ("rate", "clean", "hurt", "most"), [(0.5, 1000, 2000, 600), (1e-2, 20_000, 10_000, 60), (1e-3, 100_000, 50_000, 60)]
)
def test_a_model_whose_order_is_gone_is_worse_after_some_positives(
    rate: float, clean: int, hurt: int, most: int
) -> None:
    p, y = drawn(clean, rate)
    q, v = drawn(hurt, rate, seed=2)
    q = np.random.default_rng(3).permutation(q)
    _, found = run(np.r_[p, q], np.r_[y, v])
    number, passed = found[0]
    assert number > clean
    assert v[: number - clean].sum() <= most
    assert not level_of(passed.window.table, passed.before.table, passed.slope).is_all


def test_an_onset_lies_between_marks_next_to_it() -> None:
    held = 0
    for seed in range(6):
        p, y = drawn(6000, 0.3, seed=seed)
        q, v = drawn(2000, 0.3, seed=seed + 50, slope=-1.0)
        tables, number = ReliabilityTables(edges_of(p[:N_FIRST]), 1e6), 0
        for number, (one, label) in enumerate(zip([*p, *q], [*y, *v], strict=True), start=1):
            if tables.block.add(one, bool(label)) and (passed := tables.end_block(number)) is not None:
                break
        assert 6000 < number < 6600
        sharpened, onset = tables.onset(passed)
        assert onset is not None
        assert onset.low is not None
        assert onset.low <= onset.observation <= onset.high
        assert sharpened.before.n + sharpened.window.n == number == onset.observation - 1 + sharpened.window.n
        held += onset.low <= 6001 <= onset.high
    assert held >= 5


def test_a_calibration_that_drifts_slowly_is_learnt_to_vary_beyond_the_law() -> None:
    # The level wanders with a standard deviation of .1 and a time constant of 2000 rows.
    rng = np.random.default_rng(5)
    n, keep = 100_000, math.exp(-100 / 2000)
    level = np.zeros(n // 100)
    for i in range(1, len(level)):
        level[i] = keep * level[i - 1] + 0.1 * math.sqrt(1.0 - keep**2) * rng.normal()
    x = 1.3 * rng.normal(size=n)
    tables, _ = run(expit(x), rng.random(n) < expit(x + np.repeat(level, 100)), once_in=1e12)
    newest = max(tables.marks)
    slope, *_, up, down = tables._dispersion(5, tables.marks[newest], newest)
    assert up == down > 1.2
    assert slope < up


@pytest.mark.parametrize("cut", [100, 300, 5000, 9000])
def test_restored_tables_go_on_bit_for_bit(cut: int) -> None:
    p, y = drawn(9500, 0.05)
    whole, _ = run(p, y)
    first, _ = run(p[:cut], y[:cut], ReliabilityTables(edges_of(p[:N_FIRST]), 1e6))
    second = ReliabilityTables.from_snapshot(first.snapshot())
    for number, (one, label) in enumerate(zip(p[cut:].tolist(), y[cut:].tolist(), strict=True), start=cut + 1):
        if second.block.add(one, label):
            assert second.end_block(number) is None
    assert second.snapshot() == whole.snapshot()


def naive_wealth(blocks: Sequence[np.ndarray], first: int) -> list[float]:
    """Return the mean of the e-detector after each block, the reference refitted as `Bets` does."""
    before, pending, wealth, means, due, fit = sum(blocks[:first]), 0.0 * blocks[0], np.zeros(len(GRID)), [], 0.0, None
    for number, block in enumerate(blocks[first:], start=first + 1):
        if number >= due:
            fit, due = Recalibration.of(before), 1.05 * number
        assert fit is not None
        for g, (slope, level) in enumerate(GRID.tolist()):
            gain, information = 0.0, np.zeros((2, 2))
            for n, expected, seen in block.T.tolist():
                x = math.log((expected + 1e-12) / (n + 2e-12) / (1.0 - (expected + 1e-12) / (n + 2e-12))) - fit.centre
                q = float(expit(fit.theta[0] * x + fit.theta[1]))
                other = float(expit(fit.theta[0] * x + fit.theta[1] + slope * x + level))
                gain += seen * math.log(other / q) + (n - seen) * math.log((1.0 - other) / (1.0 - q))
                information += n * q * (1.0 - q) * np.outer([x, 1.0], [x, 1.0])
            pull = information @ [slope, level]
            wealth[g] = (1.0 + wealth[g]) * math.exp(gain - 2.0 * math.sqrt(pull @ fit.covariance @ pull))
        means.append(float(wealth.mean()))
        pending = pending + block
        if wealth.mean() < 1.0:
            before, pending = before + pending, 0.0 * block
    return means


def test_bets_are_those_of_an_e_detector_reckoned_row_by_row() -> None:
    rng = np.random.default_rng(6)
    p = np.linspace(0.05, 0.9, N_BINS)
    blocks = []
    for i in range(14):
        n = rng.integers(4, 20, size=N_BINS)
        seen = rng.binomial(n, expit((0.2 if i > 9 else 1.0) * np.log(p / (1.0 - p))))
        blocks.append(np.array([n, n * p, seen], dtype=np.float64))
    bets, means = Bets(np.zeros((3, N_BINS)), 1e6), []
    for number, block in enumerate(blocks, start=1):
        bets.update(block, number)
        if number > 4:
            means.append(float(bets._wealth.mean()))
    assert means == pytest.approx(naive_wealth(blocks, 4), rel=1e-8)
    assert means[-1] > means[4]


def test_rows_that_were_not_watched_are_no_allowance_for_later() -> None:
    p, y = drawn(300_000, 1e-5)
    tables, _ = run(p, y)
    assert not tables.is_armed
    assert (tables._seen <= 40_000).all()

"""The ladder and its variances against a naive evaluation of the same blocks, and against its promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kurtosis, norm, skew

from attributary_explainers.loss_shift.ladder import Batches, Ladder

ONCE_IN, LEAST = 4e6, 12


def naive_variance(means: list[float], size: int, at_least: float, gate: float) -> float:
    """Return the largest batch variance of the full batches of `size` blocks, of pairs of them, and so on."""
    sums = [sum(means[i : i + size]) for i in range(0, len(means) - size + 1, size)]
    best = at_least
    while len(sums) >= 10:
        found = float(np.var(sums, ddof=1)) / size
        if found > at_least * (1 + gate * math.sqrt(2 / (len(sums) - 1))) and found > best:
            best = found
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=False)]
        size *= 2
    return best


def naive_passes(rows: np.ndarray, block: int) -> list[tuple[int, int]]:
    """Return (block, blocks in the window) of each test that is passed, upwards, by the formula in the docstring."""
    blocks = rows.reshape(-1, block)
    means, found = blocks.mean(axis=1), []
    for t in range(1, len(means) + 1):
        for j in range(11):
            step = max(1, 2**j // 4)
            if t % step:
                break
            n = t - 2**j
            if n < LEAST or t - n > n:
                continue
            before, window = means[:n], means[n:t]
            v = float(np.var(before, ddof=1))
            size = 1
            while t // size >= 64:
                size *= 2
            long_run = naive_variance(before.tolist(), size, v, 1.5)
            z_j = -norm.ppf(block * step / ONCE_IN / 11)
            g_rows = skew(rows[: n * block]) / math.sqrt(block)
            g_blocks = skew(before)
            g = g_blocks if g_blocks - g_rows > 1.5 * math.sqrt(6 / n) else g_rows
            k = kurtosis(before)
            k = k if k > 1.5 * math.sqrt(24 / n) else 0.0
            length = t - n
            needed = z_j + max(g, 0) / math.sqrt(length) * (z_j**2 - 1) / 6
            needed += k / length * (z_j**3 - 3 * z_j) / 24 + (z_j**3 + z_j) / (4 * (n - 1))
            if window.mean() - before.mean() >= needed * math.sqrt(long_run * (1 / length + 1 / n)):
                found.append((t, length))
                break
    return found


@pytest.mark.parametrize(
    "tail", [*(pytest.param(tail, marks=pytest.mark.long) for tail in ("normal", "dependent")), "exponential"]
)
def test_the_ladder_passes_what_the_formula_passes(tail: str) -> None:
    rng = np.random.default_rng(3)
    found = 0
    for seed in range(3):
        rows = rng.normal(size=(150, 8)) if tail == "normal" else rng.exponential(size=(150, 8))
        if tail == "dependent":
            rows = rows + np.repeat(rng.normal(size=(75, 1)), 2, axis=0)
        rows[100:] += (0.7 + 0.3 * seed) * (3.0 if tail == "dependent" else 1.0)
        ladder = Ladder([ONCE_IN], [False], 8, LEAST)
        passes = []
        for t, block in enumerate(rows, start=1):
            for one in ladder.step(*(np.array([(block**k).mean()]) for k in (1, 2, 3))):
                passes.append((t, ladder.now.n - one.start.n))
        assert passes == naive_passes(rows.ravel(), 8)
        found += len(passes)
    assert found >= 2


def test_variances_are_those_of_all_full_batches() -> None:
    rng = np.random.default_rng(5)
    means = np.cumsum(rng.normal(size=(300, 2)), axis=0) * 0.1 + rng.normal(size=(300, 2))
    batches = Batches(2)
    for n, mean in enumerate(means, start=1):
        batches.add(mean)
        if n in (9, 40, 63, 64, 130, 300):
            v = means[:n].var(axis=0, ddof=1)
            for upto in (n, n - n // 3):
                found = batches.variance(upto, v, gate=0.5)
                for i in range(2):
                    expected = naive_variance(means[:upto, i].tolist(), batches.size, float(v[i]), 0.5)
                    assert found[i] == pytest.approx(expected)


def test_a_look_compares_a_window_with_all_before_it() -> None:
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(60, 4, 2))
    ladder = Ladder([ONCE_IN, math.inf], [False, False], 4, LEAST)
    for block in rows[:48]:
        ladder.step(*((block**k).mean(axis=0) for k in (1, 2, 3)))
    start = ladder.now
    for block in rows[48:]:
        ladder.step(*((block**k).mean(axis=0) for k in (1, 2, 3)))
    look, means = ladder.look(start), rows.mean(axis=1)
    assert look.before == pytest.approx(means[:48].mean(axis=0))
    assert look.difference == pytest.approx(means[48:].mean(axis=0) - means[:48].mean(axis=0))
    ladder.go_back_to(start)
    assert ladder.now.n == 48
    assert ladder.look(start).z.tolist() == [0.0, 0.0]


def test_false_words_keep_to_the_promise() -> None:
    rng, once_in, words, n_blocks = np.random.default_rng(11), 2000.0, 0, 0
    for _ in range(20):
        ladder = Ladder([once_in], [False], 4, 31)
        for block in rng.exponential(size=(600, 4)):
            words += len(ladder.step(*(np.array([(block**k).mean()]) for k in (1, 2, 3))))
            n_blocks += 1
    # At most one in `once_in` observations on average, and not none at all: the tests overlap, so words come in runs.
    assert 0 < words <= 2 * n_blocks * 4 / once_in


def test_a_signal_that_is_never_asked_never_passes() -> None:
    ladder = Ladder([math.inf], [True], 4, LEAST)
    rng = np.random.default_rng(1)
    for t in range(100):
        block = rng.normal(size=4) + (100.0 if t > 60 else 0.0)
        assert not ladder.step(*(np.array([(block**k).mean()]) for k in (1, 2, 3)))

"""Rare positives and short histories: false words by base rate, and how many positives it takes beside an exact test.

Labels given a prediction are independent. The served logits are those of the truth (calibrated), or spread out twice as
far (over-confident), or half as far (under-confident). Inputs are independent, AR(.9), or have a season of 20 000 rows.
Nothing ever changes.

The fraud model is logistic in normal columns, served without error; then its best column, which has 60 % of the
variance of the logit, is permuted. P(y = 1 | what is served) is known before and after, so the exact likelihood ratio
(Shiryaev and Roberts, one false alarm in 10⁶ rows) is the bound: it knows the damage, and need not learn the past.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

import numpy as np
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import expit, softmax

from attributary_explainers import LossMonitor
from benchmarks.change.counting import poisson
from benchmarks.harm.feeding import Map, Row, Told, feed, nothing, of_many, of_two
from benchmarks.harm.worlds.subjects import Array, Labels

RATES = (0.5, 1e-2, 1e-3, 1e-4, 1e-5)
INPUTS = ("iid", "AR(.9)", "season")
CURVES = {"calibrated": 1.0, "over-confident": 2.0, "under-confident": 0.5}
"""Logit that is served, in units of that of the truth."""
DAY, SPREAD = 20_000, 1.3

SD, BEST = 2.0, 0.6
"""Standard deviation of the fraud model's logit, and the share of its variance that the best column has."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def quiet(rng: np.random.Generator, rate: float, inputs: str, curve: str, n: int, classes: int) -> tuple[Array, Labels]:
    """Return probabilities, shape (n, classes), and labels; the rare class is the last one."""
    z = rng.standard_normal((n, classes - 1))
    if inputs == "AR(.9)":
        z = np.asarray(lfilter([math.sqrt(1.0 - 0.81)], [1.0, -0.9], z, axis=0))
    elif inputs == "season":
        z += np.sin(2.0 * np.pi * (np.arange(n) + rng.integers(DAY)) / DAY)[:, None]
    base = np.zeros(classes)
    base[-1] = math.log((classes - 1) * rate / (1.0 - rate))
    logits = np.column_stack([np.zeros(n), SPREAD * z])
    p = softmax(base + logits, axis=1)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return np.asarray(softmax(base + CURVES[curve] * logits, axis=1)), y


def run_quiet(rate: float, inputs: str, curve: str, classes: int, seed: int, n: int) -> Told:
    """One stream on which nothing happens."""
    key = [list(RATES).index(rate), INPUTS.index(inputs), list(CURVES).index(curve), classes, seed]
    p, y = quiet(np.random.default_rng([47, *key]), rate, inputs, curve, n, classes)
    predictions = of_two(p[:, 1]) if classes == 2 else of_many(p)
    return feed(LossMonitor(output="probabilities", learns=False), nothing(n), y.tolist(), predictions)


def level_for(rate: float) -> float:
    """Return the intercept at which positives are this frequent."""
    return float(brentq(lambda b: WEIGHTS @ expit(b + SD * NODES) - rate, -25.0, 5.0))


def permuted_probability(x: Array, base: float) -> Array:
    """Return P(y = 1) given the logit that is served, once the best column is permuted."""
    best, rest = BEST * SD**2, (1.0 - BEST) * SD**2
    spread = math.sqrt(rest * best / SD**2 + best)
    grid = np.linspace(x.min() - 1e-6, x.max() + 1e-6, 400)
    means = base + (grid - base) * rest / SD**2
    return np.asarray(np.interp(x, grid, expit(means[:, None] + spread * NODES) @ WEIGHTS))


def fraud(rng: np.random.Generator, rate: float, n_clean: int, n_then: int) -> tuple[Array, Labels, float]:
    """Return served logits, labels, and the intercept; the best column is permuted after the clean rows."""
    base, n = level_for(rate), n_clean + n_then
    best, rest = math.sqrt(BEST) * SD * rng.standard_normal(n), math.sqrt(1.0 - BEST) * SD * rng.standard_normal(n)
    y = (rng.random(n) < expit(base + best + rest)).astype(np.int64)
    best[n_clean:] = math.sqrt(BEST) * SD * rng.standard_normal(n_then)
    return base + best + rest, y, base


def exact(x: Array, y: Labels, base: float, once_in: float = 1e6) -> int | None:
    """Return the row at which the exact likelihood ratio tells; None if it does not."""
    q = permuted_probability(x, base)
    gain = np.where(y == 1, np.log(q) - np.log(expit(x)), np.log1p(-q) - np.log1p(-expit(x)))
    log_r, limit = -math.inf, math.log(once_in)
    for i, one in enumerate(gain.tolist(), start=1):
        log_r = float(np.logaddexp(0.0, log_r)) + one
        if log_r >= limit:
            return i
    return None


def run_fraud(rate: float, clean: int, seed: int) -> tuple[int | None, int | None, str]:
    """Return the positives until told, those of the exact test, and the kind."""
    n_clean, n_then = int(clean / rate), int(200 / rate)
    x, y, base = fraud(np.random.default_rng([48, seed, int(1 / rate), clean]), rate, n_clean, n_then)
    told = feed(
        LossMonitor(output="probabilities", learns=False),
        nothing(len(y)),
        y.tolist(),
        of_two(expit(x)),
        until=lambda event: event.observation > n_clean,
    )
    after = told.after(n_clean)
    bound = exact(x[n_clean:], y[n_clean:], base)
    return (
        int(y[n_clean : after[0].observation].sum()) if after else None,
        None if bound is None else int(y[n_clean : n_clean + bound].sum()),
        after[0].first if after else "nothing",
    )


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """False words per million rows at each base rate, and positives until a permuted column is told."""
    n, seeds = (1_000_000, 3) if full else (200_000, 1)
    for classes in (2, 3):
        for rate in RATES:
            cells = [(rate, i, c, classes, seed, n) for i in INPUTS for c in CURVES for seed in range(seeds)]
            told: list[Told] = of(run_quiet, cells)
            shifts = [s for one in told for s in one.shifts]
            millions = n * len(cells) / 1e6
            low, high = poisson(len(shifts))
            yield Row(
                f"false words per 10⁶ rows, base rate {rate:g}, {classes} classes, {millions:.1f}·10⁶ rows",
                f"{len(shifts) / millions:.2f} ({low / millions:.2f}–{high / millions:.2f})",
                "≤ 1",
            )
            lines += [
                f"{classes} classes {rate:g} {i} {c} seed {seed}: {s.first} by {s.signal} at {s.observation}"
                for (_, i, c, _, seed, _), one in zip(cells, told, strict=True)
                for s in one.shifts
            ]
    for rate in (1e-3, 1e-4):
        for clean in (20, 100, 500) if full else (100,):
            found = of(run_fraud, [(rate, clean, seed) for seed in range(12 if full else 3)])
            own = [a for a, _, _ in found if a is not None]
            bound = [b for _, b, _ in found if b is not None]
            yield Row(
                f"best column permuted, base rate {rate:g}, {clean} positives before: positives until told, median",
                f"{median(own) if own else math.inf:g} (exact ratio {median(bound):g}); told {len(own)}/{len(found)}, "
                f"worse {sum(kind == 'worse' for _, _, kind in found)}",
                "≤ 3 times",
            )

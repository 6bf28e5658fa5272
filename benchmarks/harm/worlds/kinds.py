"""What happens to a frozen classifier of two classes, by name: rows, their labels, and the truth of the moment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from benchmarks.harm.worlds import damages as d
from benchmarks.harm.worlds.subjects import (
    IGNORED,
    UNREAD,
    Array,
    Labels,
    Subject,
    auc,
    labels,
    latent,
    log_loss,
    subject,
)

HARM, REGRET = 0.010, 0.004
"""AUC lost; log loss beyond that of the truth, in nats."""


class Rows(NamedTuple):
    """Rows as served (n, 20), labels (n,), and the probability (n,) that the truth of the moment gives label 1."""

    x: Array
    y: Labels
    truth: Array


Make = Callable[[Subject, np.random.Generator, int], Rows]


@dataclass(frozen=True)
class Kind:
    """A kind of damage or of harmless shift; `inputs`: only which rows come has changed, no row is served wrong."""

    make: Make
    inputs: bool = False


def clean(s: Subject, rng: np.random.Generator, n: int) -> Rows:
    """Nothing happens."""
    return _labelled(s, rng, s.population.inputs(latent(rng, n)))


def _labelled(s: Subject, rng: np.random.Generator, x: Array, rule: int = 0) -> Rows:
    q = s.population.probability(x, rule)
    return Rows(x, labels(rng, q), q)


def served(damage: d.Damage, *ranks: int) -> Make:
    """The columns of these importance ranks, from 1, are damaged."""
    return lambda s, rng, n: damaged(s, rng, clean(s, rng, n), damage, [s.ranked[rank - 1] for rank in ranks])


def damaged(s: Subject, rng: np.random.Generator, rows: Rows, damage: d.Damage, columns: Sequence[int]) -> Rows:
    """The same rows with columns served wrong."""
    x = rows.x.copy()
    for j in columns:
        x[:, j] = damage(rng, s.sample[:, j], x[:, j])
    return rows._replace(x=x)


def _swapped(s: Subject, rng: np.random.Generator, n: int) -> Rows:
    x, y, q = clean(s, rng, n)
    a, b = s.ranked[1], s.ranked[4]
    x[:, [a, b]] = x[:, [b, a]]
    return Rows(x, y, q)


def _tilted(size: float, *columns: int) -> Make:
    """The latent numbers of columns move: every other column, too, that depends on them."""

    def make(s: Subject, rng: np.random.Generator, n: int) -> Rows:
        z = latent(rng, n)
        z[:, list(columns)] += size * np.where(np.arange(len(columns)) % 2, -1.0, 1.0)
        return _labelled(s, rng, s.population.inputs(z))

    return make


def _towards(doubt: float) -> Make:
    """Rows come more often where the truth is in doubt (or less often)."""

    def make(s: Subject, rng: np.random.Generator, n: int) -> Rows:
        x = s.population.inputs(latent(rng, 8 * n))
        weight = np.exp(-doubt * np.abs(s.population.score(x, 0)))
        kept = np.flatnonzero(rng.random(len(x)) < weight / np.quantile(weight, 0.99))[:n]
        if len(kept) < n:
            raise RuntimeError("too few rows to choose from")
        return _labelled(s, rng, x[kept])

    return make


def _share(factor: float) -> Make:
    """Positives are so many times as frequent, and look as they did."""

    def make(s: Subject, rng: np.random.Generator, n: int) -> Rows:
        x, y, q = clean(s, rng, 5 * n)
        before = float(s.population.probability(s.sample).mean())
        after = factor * before
        ones = int(rng.binomial(n, after))
        rows = rng.permutation(np.r_[np.flatnonzero(y == 1)[:ones], np.flatnonzero(y == 0)[: n - ones]])
        return Rows(x[rows], y[rows], np.asarray(expit(logit(q[rows]) + logit(after) - logit(before))))

    return make


def _bent(steepness: float = 1.0, offset: float = 0.0) -> Make:
    def make(s: Subject, rng: np.random.Generator, n: int) -> Rows:
        x = s.population.inputs(latent(rng, n))
        q = np.asarray(expit(steepness * s.population.score(x, 0) + offset))
        return Rows(x, labels(rng, q), q)

    return make


def flipped(share: float, only: int | None = None) -> Make:
    """So many labels, or labels of this class, are recorded as the other one."""

    def make(s: Subject, rng: np.random.Generator, n: int) -> Rows:
        x, y, q = clean(s, rng, n)
        wrong = rng.random(n) < share
        if only is not None:
            wrong &= y == only
        up, down = (share if only in (None, 0) else 0.0), (share if only in (None, 1) else 0.0)
        return Rows(x, np.where(wrong, 1 - y, y), q * (1.0 - down) + (1.0 - q) * up)

    return make


def _segment(s: Subject, rng: np.random.Generator, n: int) -> Rows:
    """One row in sixteen, told by a column that nobody reads, has its three best columns permuted."""
    rows = clean(s, rng, n)
    hit = np.flatnonzero(rows.x[:, UNREAD[1]] > 1.534)
    for j in s.ranked[:3]:
        rows.x[hit, j] = rows.x[rng.permutation(hit), j]
    return rows


def _another_rule(s: Subject, rng: np.random.Generator, n: int) -> Rows:
    return _labelled(s, rng, s.population.inputs(latent(rng, n)), rule=1)


def _others_moved(s: Subject, rng: np.random.Generator, n: int) -> Rows:
    return damaged(s, rng, clean(s, rng, n), d.moved(2.0), [*IGNORED, *UNREAD])


KINDS: dict[str, Kind] = {
    "nothing": Kind(clean, inputs=True),
    "nothing, again": Kind(clean, inputs=True),
    "inputs move, mildly": Kind(_tilted(0.3, 2, 5), inputs=True),
    "inputs move": Kind(_tilted(0.7, 2, 5, 6), inputs=True),
    "inputs move far": Kind(_tilted(1.3, 1, 2, 5, 6), inputs=True),
    "doubtful rows more often": Kind(_towards(0.5), inputs=True),
    "sure rows more often": Kind(_towards(-0.25), inputs=True),
    "eight columns that decide nothing move": Kind(_others_moved),
    "a column that decides nothing gets stuck": Kind(lambda s, r, n: damaged(s, r, clean(s, r, n), d.stuck, [14])),
    "positives 1.5 times as frequent": Kind(_share(1.5)),
    "positives .6 times as frequent": Kind(_share(0.6)),
    "positives more likely everywhere": Kind(_bent(offset=0.45)),
    "a third of the positives recorded as negatives": Kind(flipped(1 / 3, only=1)),
    "labels less noisy": Kind(_bent(1.4)),
    "labels noisier": Kind(_bent(0.7)),
    "15 % of labels flipped": Kind(flipped(0.15)),
    "best column permuted": Kind(served(d.permuted(), 1)),
    "third column permuted": Kind(served(d.permuted(), 3)),
    "second column stuck": Kind(served(d.stuck, 2)),
    "fifth column stuck": Kind(served(d.stuck, 5)),
    "best column stuck in bursts": Kind(served(d.stuck_in_bursts, 1)),
    "second column in another unit": Kind(served(d.unit(1.8, 32.0), 2)),
    "half of two columns missing, mean served": Kind(served(d.missing(0.5), 2, 4)),
    "sign of the third column turned": Kind(served(d.turned, 3)),
    "second and fifth column swapped": Kind(_swapped),
    "error of one sd in the best column": Kind(served(d.noise(1.0), 1)),
    "error of half an sd in three columns": Kind(served(d.noise(0.5), 2, 3, 4)),
    "error in the best column that grows": Kind(served(d.growing_noise(1.2), 1)),
    "best column saturated": Kind(served(d.saturated(0.6), 1)),
    "three columns rounded down": Kind(served(d.rounded(0.8), 1, 2, 3)),
    "three columns permuted in 15 % of rows": Kind(served(d.permuted(0.15), 1, 2, 3)),
    "three columns permuted in one segment of 6 %": Kind(_segment),
    "labels follow another rule": Kind(_another_rule),
}


class Figures(NamedTuple):
    """Of the population: AUC lost, rise of the log loss and of the regret, share of positives."""

    auc: float
    loss: float
    regret: float
    positives: float
    limit: float = REGRET
    """Regret that counts."""

    @property
    def harm(self) -> bool:
        """Whether the model orders rows worse than it did."""
        return self.auc > HARM

    @property
    def worse(self) -> bool:
        """Whether the model has fallen behind what could be known."""
        return self.regret > self.limit


def measured(s: Subject, make: Make, n: int = 40_000) -> Figures:
    """AUC, log loss, regret and share of positives to be expected of a kind, over many rows."""
    x, _, q = make(s, np.random.default_rng(41), n)
    p = s.predict(x)
    loss = log_loss(q, p)
    return Figures(auc(q, p), loss, loss - log_loss(q, q, least=1e-12), float(q.mean()))


UNKNOWN = Figures(math.nan, math.nan, math.nan, math.nan)


@lru_cache
def _clean(model: str) -> Figures:
    return measured(subject(model), clean)


def figures(model: str, kind: str) -> Figures:
    """What a kind does to the model as it was taught."""
    s = subject(model)
    before, after = _clean(model), measured(s, KINDS[kind].make)
    return Figures(before.auc - after.auc, after.loss - before.loss, after.regret - before.regret, after.positives)

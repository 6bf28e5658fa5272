"""Five classes: a population of parcels, a multinomial logistic model, and what may happen to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from attributary_explainers import LossMonitor
from benchmarks.harm.feeding import CHANGE_AT, Map, Row, feed, nothing, of_many
from benchmarks.harm.frozen import Trial, by_kind, with_figures
from benchmarks.harm.worlds.kinds import Figures
from benchmarks.harm.worlds.subjects import Array, Labels, log_loss, matthews, precision, recall

COLUMNS, CLASSES = 12, 5
LIMIT = 0.01
"""A rise of the regret counts from this share of the labels' entropy on."""

WEIGHTS = np.array(
    [
        [1.4, -0.9, 0.0, 0.5, -0.6], [-0.8, 0.2, 1.2, -0.7, 0.1], [0.3, 0.9, -0.4, -1.0, 0.2],
        [0.0, -0.6, 0.5, 0.8, -0.7], [0.5, 0.3, -0.6, 0.0, 0.4], [-0.4, 0.4, 0.0, 0.3, -0.3],
        [0.2, -0.3, 0.3, -0.2, 0.0], [0.1, 0.1, -0.2, 0.2, -0.2],
        *[[0.0] * CLASSES] * 4,
    ]
)  # fmt: skip
OFFSETS = np.array([0.6, 0.2, 0.0, -0.4, -0.8])


class Rows(NamedTuple):
    """Rows as served (n, 12), labels 0 to 4 (n,), and the probabilities (n, 5) of the truth of the moment."""

    x: Array
    y: Labels
    truth: Array


Make = Callable[[np.random.Generator, int], Rows]


def drawn(rng: np.random.Generator, n: int) -> Array:
    """Laplace, uniform and normal columns of variance 1."""
    x = rng.standard_normal((n, COLUMNS))
    x[:, :3] = rng.laplace(scale=np.sqrt(0.5), size=(n, 3))
    x[:, 3:6] = rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, 3))
    return x


def probabilities(x: Array, weights: Array = WEIGHTS) -> Array:
    """Of the classes, by the truth: linear in the logits but for one fold."""
    logits = x @ weights + OFFSETS
    logits[:, 2] += 0.3 * np.abs(x[:, 4])
    return np.asarray(softmax(logits, axis=1))


def chosen(rng: np.random.Generator, p: Array) -> Labels:
    """One label for each row of probabilities."""
    return np.asarray(np.minimum((rng.random((len(p), 1)) > p.cumsum(axis=1)).sum(axis=1), p.shape[1] - 1))


def clean(rng: np.random.Generator, n: int) -> Rows:
    """Nothing happens."""
    return _labelled(rng, drawn(rng, n))


def _labelled(rng: np.random.Generator, x: Array, weights: Array = WEIGHTS) -> Rows:
    p = probabilities(x, weights)
    return Rows(x, chosen(rng, p), p)


def _served(alter: Callable[[np.random.Generator, Array], Any]) -> Make:
    def make(rng: np.random.Generator, n: int) -> Rows:
        rows = clean(rng, n)
        x = rows.x.copy()
        alter(rng, x)
        return rows._replace(x=x)

    return make


def _permuted(*columns: int, share: float = 1.0) -> Make:
    def alter(rng: np.random.Generator, x: Array) -> None:
        hit = np.flatnonzero(rng.random(len(x)) < share)
        for j in columns:
            x[hit, j] = x[rng.permutation(hit), j]

    return _served(alter)


def _noisy(size: float, *columns: int) -> Make:
    def alter(rng: np.random.Generator, x: Array) -> None:
        x[:, list(columns)] += size * rng.standard_normal((len(x), len(columns)))

    return _served(alter)


def _set(*columns: int, factor: float, offset: float) -> Make:
    def alter(rng: np.random.Generator, x: Array) -> None:
        x[:, list(columns)] = factor * x[:, list(columns)] + offset

    return _served(alter)


def _towards(doubt: float) -> Make:
    def make(rng: np.random.Generator, n: int) -> Rows:
        x = drawn(rng, 8 * n)
        p = probabilities(x)
        weight = np.exp(-doubt * (p * np.log(p)).sum(axis=1))
        return _labelled(rng, x[np.flatnonzero(rng.random(len(x)) < weight / np.quantile(weight, 0.99))[:n]])

    return make


def _moved(rng: np.random.Generator, n: int) -> Rows:
    x = drawn(rng, n)
    x[:, [1, 5, 6]] += [0.5, -0.5, 0.5]
    return _labelled(rng, x)


def _frequent(rng: np.random.Generator, n: int) -> Rows:
    """The last class is 2.2 times as frequent, and its rows look as they did."""
    x, y, p = clean(rng, 3 * n)
    rows = np.flatnonzero(rng.random(3 * n) < np.where(y == CLASSES - 1, 1.0, 1 / 2.2))[:n]
    q = p[rows] * [*[1 / 2.2] * (CLASSES - 1), 1.0]
    return Rows(x[rows], y[rows], q / q.sum(axis=1, keepdims=True))


def _recorded(rng: np.random.Generator, n: int) -> Rows:
    """A quarter of the first class is recorded as the second."""
    x, y, p = clean(rng, n)
    q = p.copy()
    q[:, 1] += q[:, 0] / 4
    q[:, 0] *= 3 / 4
    return Rows(x, np.where((y == 0) & (rng.random(n) < 0.25), 1, y), q)


def _exchanged(rng: np.random.Generator, n: int) -> Rows:
    weights = WEIGHTS.copy()
    weights[[2, 3]] = weights[[3, 2]]
    return _labelled(rng, drawn(rng, n), weights)


KINDS: dict[str, Make] = {
    "nothing": clean,
    "nothing, again": clean,
    "inputs move": _moved,
    "doubtful rows more often": _towards(1.3),
    "sure rows more often": _towards(-1.3),
    "columns that decide nothing move": _set(8, 9, 10, 11, factor=1.0, offset=2.0),
    "one class 2.2 times as frequent": _frequent,
    "a quarter of one class recorded as another": _recorded,
    "best column permuted": _permuted(0),
    "second column permuted": _permuted(1),
    "third column stuck": _set(2, factor=0.0, offset=0.0),
    "fourth column, sign turned": _set(3, factor=-1.0, offset=0.0),
    "second column in another unit": _set(1, factor=1.8, offset=32.0),
    "error of .6 sd in the best column": _noisy(0.6, 0),
    "error of .5 sd in three columns": _noisy(0.5, 1, 2, 3),
    "error of .4 sd in the second column": _noisy(0.4, 1),
    "sixth column permuted": _permuted(5),
    "three columns permuted in 12 % of rows": _permuted(0, 1, 2, share=0.12),
    "two columns exchanged in the rule": _exchanged,
}


@lru_cache
def taught() -> Any:
    """The frozen model, taught once a process."""
    x, y, _ = clean(np.random.default_rng(51), 60_000)
    return LogisticRegression(max_iter=500).fit(x, y)


def predict(x: Array, scale: float = 1.0) -> Array:
    """Probabilities (n, 5)."""
    return np.asarray(softmax(scale * taught().decision_function(x), axis=1))


def figures(model: str, kind: str) -> Figures:
    """Rise of the log loss and of the regret; there is no AUC of five classes here."""
    before, after = (make(np.random.default_rng(52), 60_000) for make in (clean, KINDS[kind]))
    entropy = log_loss(before.truth, np.tile(before.truth.mean(axis=0), (len(before.y), 1)))
    loss = [log_loss(r.truth, predict(r.x)) for r in (before, after)]
    best = [log_loss(r.truth, r.truth, least=1e-12) for r in (before, after)]
    return Figures(0.0, loss[1] - loss[0], loss[1] - best[1] - loss[0] + best[0], 0.0, LIMIT * entropy)


def run_classes(kind: str, seed: int, scale: float) -> Trial:
    """Clean rows, then rows of the kind, from a row that depends on the seed."""
    rng = np.random.default_rng([72, seed, list(KINDS).index(kind)])
    at = CHANGE_AT + int(rng.integers(0, 1000))
    before, after = clean(rng, at), KINDS[kind](rng, CHANGE_AT)
    x, y = np.vstack((before.x, after.x)), np.r_[before.y, after.y]
    told = feed(LossMonitor(learns=False, seed=seed), nothing(len(y)), y.tolist(), of_many(predict(x, scale)))
    return Trial("classes", kind, len(told.before(at)), tuple(told.after(at)), at)


def trials_of(of: Map, seeds: int, scale: float = 1.0) -> list[Trial]:
    """Of all kinds."""
    arguments = [(kind, seed, scale) for kind in KINDS for seed in range(1, 1 + seeds)]
    return with_figures(of, of(run_classes, arguments), figures)


def rows(of: Map, full: bool, lines: list[str]) -> Iterator[Row]:
    """Matthews' coefficients with regret, of the model as it is, too sure and not sure enough."""
    for scale, how in ((1.0, "five classes"), (2.0, "… logits doubled"), (0.5, "… logits halved")):
        trials = trials_of(of, 4 if full else 1, scale)
        real = [t.figures.worse for t in trials]
        for kinds, name in ((("worse", "level"), "*worse* or *level*"), (("worse",), "*worse*")):
            told = [t.told(*kinds) for t in trials]
            found = f"{matthews(real, told):.2f}; {precision(real, told):.2f} (recall {recall(real, told):.2f})"
            what = f"{how}, {len(trials)} trials of {len(KINDS)} kinds: MCC of {name} with regret; precision"
            yield Row(what, found, "≥ .85" if len(kinds) == 2 else "–")
        lines += [how, *by_kind(trials)]

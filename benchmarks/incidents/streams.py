"""Streams with a known truth: what happens to a model, when, and to which feature.

Learners meet Agrawal's credit rules or a linear rule; frozen models are the truth itself until something happens, so
that all they lose is the noise of the labels. None of the streams is one that a threshold was chosen on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import numpy as np
from river import forest, linear_model, naive_bayes, optim, preprocessing, tree
from river.datasets import synth
from scipy.special import expit, softmax

Row = tuple[dict[str, Any], Any]
Array = np.ndarray[Any, np.dtype[np.float64]]

AT, N = 6000, 12_000
"""Observations before something happens, and in all."""
RARE, RARER = 40_000, 400_000
"""Observations before something happens where 1 in 1000, and 1 in 10 000, is positive; twice as many in all."""
QUIET = 1_000_000
"""Observations of which nothing may be said."""
SECOND = 1000
"""Observations between what happens to one feature and to another one."""
WEIGHTS = np.array([1.6, -1.2, 0.9, 0.6, -0.4, 0.2])
NAMES = tuple("abcdef")


@dataclass(frozen=True)
class Case:
    """A stream and the model that meets it.

    Attributes
    ----------
    make
        Returns the model and its rows, for a seed.
    at
        After how many observations something happens, each time; empty where nothing does.
    what
        What may be said of it at last, in the words of an incident. Of a model that learns, whose loss has settled
        above what it was, that is `worse`.
    features
        The feature that it is about, where there is one; where it happens more than once, that of each time.
    advice
        What is to be done at last, where only one thing is right.
    then
        The version that takes over after the first of `at`.
    """

    name: str
    make: Callable[[int], tuple[Any, Iterator[Row]]]
    learns: bool
    at: tuple[int, ...] = ()
    what: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    n: int = N
    advice: str | None = None
    then: Any = None

    @property
    def is_long(self) -> bool:
        """Whether it takes minutes."""
        return self.n > 3 * AT

    @property
    def loss(self) -> str | None:
        """A function does not say what it predicts."""
        return None if self.learns else "squared" if "numbers" in self.name else "brier"


Make = Callable[[int], tuple[Any, Iterator[Row]]]

# ---------------------------------------------------------------- models that learn


def _hat(seed: int) -> Any:
    return tree.HoeffdingAdaptiveTreeClassifier(seed=seed)


def _forest(seed: int) -> Any:
    return forest.ARFClassifier(n_models=3, seed=seed)


def _mixed(seed: int) -> tuple[Any, Iterator[Row]]:
    return None, iter(synth.Mixed(0, seed=seed))


def _rules(seed: int, *functions: int) -> Iterator[Row]:
    """Agrawal's rules, one after the other, `AT` observations each."""
    parts = (synth.Agrawal(f, seed=10 * seed + i).take(AT) for i, f in enumerate(functions))
    return chain(*parts)


def _gradual(seed: int) -> Iterator[Row]:
    """The new rule comes more and more often, over 2000 observations."""
    rng = np.random.default_rng(seed)
    old, new = (iter(synth.Agrawal(f, seed=10 * seed + f)) for f in (0, 1))
    for i in range(N):
        yield next(new if rng.random() < (i - AT) / 2000 else old)


def _linear(scale: float, sign: float = -1.0) -> Make:
    """A coefficient is reversed."""

    def make(seed: int) -> tuple[Any, Iterator[Row]]:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((N, 6))
        weights = np.tile(WEIGHTS, (N, 1))
        weights[AT:, 0] *= sign
        y = scale * ((x * weights).sum(axis=1) + 0.3 * rng.standard_normal(N))
        regressor = linear_model.LinearRegression(optimizer=optim.SGD(0.02), intercept_lr=0.02)
        return preprocessing.TargetStandardScaler(regressor), _rows(x, y.tolist())

    return make


# ---------------------------------------------------------------- frozen models


def _rows(x: Array, y: list[Any], names: tuple[str, ...] = NAMES) -> Iterator[Row]:
    return ((dict(zip(names, row, strict=True)), label) for row, label in zip(x.tolist(), y, strict=True))


@dataclass(frozen=True)
class Logistic:
    """Two classes; a feature that is missing counts as 0."""

    intercept: float
    first: float = 1.0
    """By which the weight of the best column is multiplied."""

    def __call__(self, x: dict[str, Any]) -> dict[bool, float]:
        """Return the probabilities of both classes."""
        total = self.intercept + sum(w * x.get(name, 0.0) for name, w in zip(NAMES, WEIGHTS.tolist(), strict=True))
        total += (self.first - 1.0) * WEIGHTS[0] * x.get(NAMES[0], 0.0)
        p = float(expit(total))
        return {False: 1.0 - p, True: p}


@dataclass(frozen=True)
class Linear:
    """Numbers."""

    scale: float

    def __call__(self, x: dict[str, Any]) -> float:
        """Return the number."""
        return self.scale * math.fsum(w * x.get(name, 0.0) for name, w in zip(NAMES, WEIGHTS.tolist(), strict=True))


@dataclass(frozen=True)
class Softmax:
    """Several classes."""

    weights: list[list[float]]
    """By feature and class."""

    def __call__(self, x: dict[str, Any]) -> dict[int, float]:
        """Return the probability of each class."""
        row = np.array([x.get(name, 0.0) for name in NAMES])
        return dict(enumerate(softmax(row @ np.array(self.weights)).tolist()))


Damage = Callable[[Array, Array, np.random.Generator], None]
"""Changes the rows (n, 6) and the probabilities (n,) that came after, in place."""


def _permuted(x: Array, _: Array, rng: np.random.Generator) -> None:
    x[:, 0] = rng.permutation(x[:, 0])


def _stuck(x: Array, _: Array, __: np.random.Generator) -> None:
    x[:, 0] = x[0, 0]


def _hundredfold(x: Array, _: Array, __: np.random.Generator) -> None:
    x[:, 0] *= 100.0


def _gone(x: Array, _: Array, __: np.random.Generator) -> None:
    x[:, 0] = np.nan


def _mostly_gone(x: Array, _: Array, rng: np.random.Generator) -> None:
    x[rng.random(len(x)) < 0.8, 0] = np.nan


def _half_hundredfold(x: Array, _: Array, rng: np.random.Generator) -> None:
    x[rng.random(len(x)) < 0.5, 0] *= 100.0


def _one_and_another(x: Array, _: Array, __: np.random.Generator) -> None:
    x[:, 0] = x[0, 0]
    x[SECOND:, 1] *= 100.0


def _flipped(_: Array, p: Array, __: np.random.Generator) -> None:
    p[:] = 0.65 * p + 0.35 * (1.0 - p)


def _more_positives(_: Array, p: Array, __: np.random.Generator) -> None:
    p[:] = expit(np.log(p / (1.0 - p)) + 1.0)


def _further(x: Array, p: Array, rng: np.random.Generator) -> None:
    """Inputs move, by one standard deviation of a feature that hardly decides; the rule is the same."""
    x[:, 5] += 1.0
    p[:] = expit(x @ WEIGHTS)


def frozen(damage: Damage | None, intercept: float = 0.0, first: float = 1.0, *, at: int = AT) -> Make:
    """A logistic model that is right until something happens."""

    def make(seed: int) -> tuple[Any, Iterator[Row]]:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((2 * at, 6))
        p = expit(intercept + x @ WEIGHTS)
        if damage is not None:
            damage(x[at:], p[at:], rng)
        y = (rng.random(2 * at) < p).tolist()
        return Logistic(intercept, first), _rows(x, y)

    return make


def _frozen_numbers(scale: float, damage: Damage | None) -> Make:
    def make(seed: int) -> tuple[Any, Iterator[Row]]:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((N, 6))
        y = scale * (x @ WEIGHTS + 0.5 * rng.standard_normal(N))
        if damage is not None:
            damage(x[AT:], y[AT:], rng)
        return Linear(scale), _rows(x, y.tolist())

    return make


def _many(damage: Damage | None) -> Make:
    """Five classes."""
    weights = np.random.default_rng(5).standard_normal((6, 5))

    def make(seed: int) -> tuple[Any, Iterator[Row]]:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((N, 6))
        p = softmax(x @ weights, axis=1).cumsum(axis=1)
        y = (rng.random((N, 1)) > p[:, :-1]).sum(axis=1)
        if damage is not None:
            damage(x[AT:], p[AT:, 0], rng)
        return Softmax(weights.tolist()), _rows(x, y.tolist())

    return make


def learnt(model: Callable[[int], Any], rows: Make) -> Make:
    """A model that learns these rows, from the first one on."""
    return lambda seed: (model(seed), rows(seed)[1])


def _logistic(_: int) -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def _naive_bayes(_: int) -> Any:
    return naive_bayes.GaussianNB()  # type: ignore[no-untyped-call]


def _without_end(make: Make) -> Make:
    """The same again and again, from other seeds."""
    return lambda seed: (make(seed)[0], chain.from_iterable(make(1000 * seed + i)[1] for i in count()))


ADAPTS = ("changed", "worse")
BREAKS = ("inputs", "worse")

CASES = (
    Case("HAT, another rule at once", lambda s: (_hat(s), _rules(s, 0, 1)), True, (AT,), ADAPTS),
    Case("HAT, another rule over 2000", lambda s: (_hat(s), _gradual(s)), True, (AT,), ADAPTS),
    Case(
        "HAT, another rule and back", lambda s: (_hat(s), _rules(s, 0, 1, 0)), True, (AT, 2 * AT), ADAPTS, n=3 * AT
    ),
    Case("forest, another rule at once", lambda s: (_forest(s), _rules(s, 0, 1)), True, (AT,), ADAPTS),
    Case("regression at .01, a coefficient reversed", _linear(0.01), True, (AT,), ADAPTS),
    Case("regression at 10⁶, a coefficient reversed", _linear(1e6), True, (AT,), ADAPTS),
    Case("HAT, nothing", lambda s: (_hat(s), iter(synth.Mixed(0, seed=s).take(N))), True),
    Case("frozen, best column permuted", frozen(_permuted), False, (AT,), ("worse",), ("a",)),
    Case("frozen, best column in another unit", frozen(_hundredfold), False, (AT,), BREAKS, ("a",)),
    Case("frozen, half of best column in another unit", frozen(_half_hundredfold), False, (AT,), BREAKS, ("a",)),
    Case("frozen, best column stuck", frozen(_stuck), False, (AT,), BREAKS, ("a",)),
    Case("frozen, best column missing", frozen(_gone), False, (AT,), BREAKS, ("a",)),
    Case("frozen, best column missing in 4 of 5 rows", frozen(_mostly_gone), False, (AT,), BREAKS, ("a",)),
    Case(
        "frozen, a column stuck, then one in another unit",
        frozen(_one_and_another), False, (AT, AT + SECOND), BREAKS, ("a", "b"),
    ),
    Case("frozen, 35 % of labels flipped", frozen(_flipped), False, (AT,), ("worse",)),
    Case("frozen, more positives", frozen(_more_positives), False, (AT,), ("level",)),
    Case("frozen, inputs move harmlessly", frozen(_further), False),
    Case("frozen, nothing", frozen(None), False),
    *(
        Case(f"frozen, {name} version", frozen(None, first=first), False, (AT,), ("version",), then=then, advice=advice)
        for name, first, then, advice in (
            ("a better", 0.0, Logistic(0.0), "nothing"),
            ("an equal", 1.0, Logistic(0.0, 0.97), "nothing"),
            ("a worse", 1.0, Logistic(0.0, 0.0), "roll_back"),
        )
    ),
    Case("frozen, 1 in 100, best column permuted", frozen(_permuted, -6.5), False, (AT,), ("worse",), ("a",)),
    Case("frozen, 1 in 100, nothing", frozen(None, -6.5), False),
    Case("frozen, five classes, best column permuted", _many(_permuted), False, (AT,), ("worse",)),
    Case("frozen, five classes, nothing", _many(None), False),
    Case("frozen numbers at 10⁶, a column stuck", _frozen_numbers(1e6, _stuck), False, (AT,), BREAKS, ("a",)),
    Case("frozen numbers at 10⁶, nothing", _frozen_numbers(1e6, None), False),
    Case(
        "frozen, 1 in 1000, best column permuted",
        frozen(_permuted, -9.5, at=RARE), False, (RARE,), ("worse",), ("a",), n=2 * RARE,
    ),
    Case(
        "logistic, 1 in 1000, best column permuted",
        learnt(_logistic, frozen(_permuted, -9.5, at=RARE)), True, (RARE,), ADAPTS, ("a",), n=2 * RARE,
    ),
    Case(
        "frozen, 1 in 10 000, best column permuted",
        frozen(_permuted, -11.9, at=RARER), False, (RARER,), ("worse",), ("a",), n=2 * RARER,
    ),
    Case(
        "logistic, 1 in 10 000, best column permuted",
        learnt(_logistic, frozen(_permuted, -11.9, at=RARER)), True, (RARER,), ADAPTS, ("a",), n=2 * RARER,
    ),
    *(
        Case(f"{name}, nothing for 10⁶ rows", make, learns, n=QUIET)
        for name, make, learns in (
            ("logistic", learnt(_logistic, _without_end(frozen(None))), True),
            ("naive Bayes", learnt(_naive_bayes, _without_end(frozen(None))), True),
            ("tree", learnt(lambda _: tree.HoeffdingTreeClassifier(), _mixed), True),
            ("HAT", learnt(_hat, _mixed), True),
            ("forest", learnt(_forest, _mixed), True),
            ("regression", _without_end(_linear(1.0, sign=1.0)), True),
            ("frozen", _without_end(frozen(None)), False),
            ("frozen numbers", _without_end(_frozen_numbers(1.0, None)), False),
        )
    ),
)  # fmt: skip

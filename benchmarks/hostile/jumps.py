"""Measure what one number far beyond all others does to models, and how many honest numbers `max_jump` refuses.

    python -m benchmarks.hostile.jumps            # all: 8 minutes
    python -m benchmarks.hostile.jumps --refused  # honest numbers only: 1 minute
    python -m benchmarks.hostile.jumps --targets  # targets only: 1 minute

The tables in docs/topics.md, "One absurd number", are of this. A target is compared as a feature is, so what is refused
of honest features is refused of honest targets.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from river import forest, linear_model, naive_bayes, neighbors, preprocessing, tree

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.guards.ranges import Ranges
from attributary_topics import InvalidRecordError

Values = npt.NDArray[np.float64]
JUMPS = 0, 10, 20, 30, 100, 1000, 2.5e5, 1e6
SEEDS = 3
N_VALUES = 100_000
N_STREAMS = 20

MODELS: dict[str, Callable[[], Any]] = {
    "logistic regression": linear_model.LogisticRegression,
    "scaler, logistic": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "Gaussian naive Bayes": naive_bayes.GaussianNB,
    "scaler, linear": lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(),
    "adaptive tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=1),
    "forest of 3": lambda: forest.ARFClassifier(n_models=3, seed=1),
    "nearest neighbours": neighbors.KNNClassifier,
}
_SLOW = "adaptive tree", "forest of 3", "nearest neighbours"
REGRESSORS: dict[str, Callable[[], Any]] = {
    "scaler, linear": MODELS["scaler, linear"],
    "regression tree": tree.HoeffdingTreeRegressor,
    "forest of 3": lambda: forest.ARFRegressor(n_models=3, seed=1),
}
"""Models that are taught one absurd target."""


def _bursts(one_in: int, low: int, high: int) -> Callable[[np.random.Generator], Values]:
    def draw(rng: np.random.Generator) -> Values:
        is_burst = rng.random(N_VALUES) < 1 / one_in
        burst, count = rng.integers(low, high, N_VALUES), rng.choice([0, 0, 0, 1, 2, 3], N_VALUES)
        return np.where(is_burst, burst, count).astype(float)

    return draw


def _two_ranges(low: float, high: float, share: float, since: int) -> Callable[[np.random.Generator], Values]:
    def draw(rng: np.random.Generator) -> Values:
        is_high = (rng.random(N_VALUES) < share) & (np.arange(N_VALUES) >= since)
        return np.where(is_high, high, low) * rng.normal(1, 0.2, N_VALUES)

    return draw


def _in_turns(rng: np.random.Generator) -> Values:
    weights = rng.normal(70, 10, N_VALUES)
    second = (np.arange(N_VALUES) >= 5000) & (np.arange(N_VALUES) % 2 == 1)
    return np.where(second, 1000 * weights, weights)


STREAMS: dict[str, Callable[[np.random.Generator], Values]] = {
    "normal": lambda rng: rng.standard_normal(N_VALUES),
    "exponential": lambda rng: rng.standard_exponential(N_VALUES),
    "lognormal, sigma 2": lambda rng: np.exp(2 * rng.standard_normal(N_VALUES)),
    "lognormal, sigma 3": lambda rng: np.exp(3 * rng.standard_normal(N_VALUES)),
    "Pareto, alpha 1": lambda rng: 1 / (1 - rng.random(N_VALUES)),
    "Pareto, alpha 1/2": lambda rng: (1 - rng.random(N_VALUES)) ** -2.0,
    "Cauchy": lambda rng: rng.standard_cauchy(N_VALUES),
    "0 to 3, bursts of 10^3 to 10^4 in 1 of 5000": _bursts(5000, 1000, 9000),
    "0 to 3, bursts of 10^5 in 1 of 50 000": _bursts(50_000, 50_000, 150_000),
    "idle (0.01), on (20) in 5 % from 5000": _two_ranges(0.01, 20, 0.05, 5000),
    "two producers in turns, kg and g": _in_turns,
    "times 1000 in half of the rows from 5000": _two_ranges(1, 1000, 0.5, 5000),
    "times 1000 in 1.5 % of the rows": _two_ranges(1, 1000, 0.015, 5000),
}


def damage(name: str, jump: float, n_after: int, *, of_target: bool = False) -> tuple[float, float]:
    """Return the accuracy over the 1000 observations behind a number of `jump` times the largest, and over all.

    A prediction of a number is right where it is off by less than half a standard deviation of the noise-free target's
    parts.

    Parameters
    ----------
    of_target
        Whether the number is the target, and not a feature.
    """
    is_regressor = of_target or name == "scaler, linear"
    soon, later = [], []
    for seed in range(SEEDS):
        rng, model, largest = random.Random(seed), (REGRESSORS if of_target else MODELS)[name](), 0.0

        def row(rng: random.Random = rng) -> tuple[dict[str, float], Any]:
            x = {name: rng.gauss(0, 1) for name in "abc"}
            target = x["a"] + x["b"]
            return x, target if is_regressor else target > 0

        for _ in range(2000):
            x, y = row()
            largest = max(largest, abs(y if of_target else x["a"]))
            model.learn_one(x, y)
        if jump:
            x, y = row()
            if of_target:
                model.learn_one(x, jump * largest)
            else:
                model.learn_one({**x, "a": jump * largest}, y if is_regressor else False)
        right = []
        for _ in range(n_after):
            x, y = row()
            predicted = model.predict_one(x)
            right.append(abs(predicted - y) < 0.5 if is_regressor else predicted == y)
            model.learn_one(x, y)
        soon.append(fmean(right[:1000]))
        later.append(fmean(right))
    return fmean(soon), fmean(later)


def n_refused(stream: str, jump: float) -> int:
    """Return how many of the values of all streams of this kind are refused."""
    config = ModelConfig(factory="any:thing", max_jump=jump)
    n = 0
    for seed in range(N_STREAMS):
        ranges = Ranges("m", config)
        for value in STREAMS[stream](np.random.default_rng(seed)).tolist():
            try:
                ranges.check({"a": value})
            except InvalidRecordError:
                n += 1
    return n


def main() -> None:
    """Print the tables."""
    logging.getLogger("attributary_agents").setLevel(logging.ERROR)  # each stream is told of
    wanted = [name for name in ("--refused", "--targets") if name in sys.argv]
    if wanted != ["--targets"]:
        print(f"refused of {N_STREAMS * N_VALUES:,} honest values in {N_STREAMS} streams, by max_jump")
        for stream in STREAMS:
            print(f"  {stream:45}", *(f"{jump:g}: {n_refused(stream, jump):6}  " for jump in (10, 20, 100)), flush=True)
    if not wanted:
        print("accuracy after one number of so many times the largest: over the next 1000, and over all")
        for name in MODELS:
            _print_damage(name, 3000 if name in _SLOW else 10_000, of_target=False)
    if wanted != ["--refused"]:
        print("the same of one target of so many times the largest")
        for name in REGRESSORS:
            _print_damage(name, 3000 if name in _SLOW else 10_000, of_target=True)


def _print_damage(name: str, n_after: int, *, of_target: bool) -> None:
    for jump in JUMPS:
        soon, later = damage(name, jump, n_after, of_target=of_target)
        print(f"  {name:22} {jump:9g}  {soon:6.1%}  {later:6.1%} of {n_after}", flush=True)


if __name__ == "__main__":
    main()

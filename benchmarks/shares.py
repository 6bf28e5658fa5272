"""What evaluating a share of the features costs in accuracy, beside explaining a share of the observations.

    python -m benchmarks.shares                       # all streams, some minutes
    python -m benchmarks.shares --only few --shares 0.1

Increments of permutation importance are taken once, with all features evaluated. Then they are smoothed as
`feature_share` has it, with features chosen anew in each repeat, and as every k-th observation alone would. What either
differs from the mean of all increments is squared, averaged over time and repeats, and added to the squared standard
error of that mean. Shown is the largest and the mean error over features, in parts of that with all features evaluated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from river import forest, linear_model, optim
from river.utils import VectorDict

from attributary_explainers import IncrementalPFI
from attributary_explainers.incremental.feature_sampling import FeatureSampling
from attributary_explainers.smoothing.importance import SmoothedImportance
from attributary_explainers.typing import Array
from benchmarks.speed.subjects import Observation, agrawal, arf, friedman, rbf

ALPHA = 0.005
LEARNED, OBSERVATIONS, BEGIN = 600, 2500, 1000
"""Observations that a model has learnt before, that are explained, and after which errors count."""
WEIGHTS = np.r_[np.linspace(2.0, 0.2, 10), np.zeros(290)]
NAMES = tuple(f"f{i}" for i in range(len(WEIGHTS)))


@dataclass(frozen=True)
class Case:
    """A model on a stream."""

    title: str
    stream: Callable[[], Iterator[Observation]]
    make: Callable[[], Any]
    loss: str = "cross_entropy"


def few() -> Iterator[Observation]:
    """300 features, of which ten count."""
    rng = np.random.default_rng(5)
    while True:
        x = rng.normal(size=len(WEIGHTS))
        yield dict(zip(NAMES, x.tolist(), strict=True)), float(WEIGHTS @ x + rng.normal())


def nearly_known() -> Any:
    """A linear model of `few` that errs a little in every weight, and learns nothing."""
    model = linear_model.LinearRegression(optimizer=optim.SGD(0.0), intercept_lr=0.0)
    model._weights = VectorDict(dict(zip(NAMES, (WEIGHTS + 0.02).tolist(), strict=True)))
    return model


def regressors() -> Any:
    """An adaptive random forest of numbers."""
    return forest.ARFRegressor(n_models=5, seed=1)


def millions() -> Iterator[Observation]:
    """Friedman's regression in another unit."""
    return ((x, 1e6 * y) for x, y in friedman())


CASES = {
    "agrawal": Case("ARF of 5, Agrawal, d 9", agrawal, lambda: arf(5)),
    "rbf": Case("ARF of 5, RBF, d 30", lambda: rbf(30), lambda: arf(5)),
    "few": Case("linear, 10 of d 300 count", few, nearly_known, "squared"),
    "millions": Case("ARF regressor of 5, d 10, y at 1e6", millions, regressors, "squared"),
}  # fmt: skip


def increments(case: Case) -> tuple[Array, Array]:
    """The increments of each observation, shape (observations, features), and the standard errors of their mean."""
    model, stream = case.make(), case.stream()
    for x, y in islice(stream, LEARNED):
        model.learn_one(x, y)
    pfi = IncrementalPFI(model, loss=case.loss, alpha=ALPHA, n_samples=3, seed=1)
    found: list[Array] = []
    for x, y in islice(stream, OBSERVATIONS):
        pfi.explain_one(x, y)
        if pfi.n_observations > len(found):
            found.append(pfi.latest_increments[1].copy())
        model.learn_one(x, y)
    return np.array(found), np.array(list(pfi.std_error.values()))


def of_features(lambdas: Array, share: float, seed: int) -> Array:
    """Importance after each observation by a share of the features, shape (observations, features)."""
    names = tuple(range(lambdas.shape[1]))
    sampling, smoothed, rng = FeatureSampling(share), SmoothedImportance(ALPHA), np.random.default_rng(seed)
    found = np.empty_like(lambdas)
    for t, row in enumerate(lambdas):
        chosen, mean = sampling.choose(names, t, rng), smoothed.means_of(names)
        evaluated = row if chosen is None else row[chosen.numbers]
        deviations = evaluated - (mean if chosen is None else mean[chosen.numbers])
        rate = smoothed.update_arrays(names, row if chosen is None else chosen.estimates(mean, evaluated))
        sampling.learn(names, chosen, rate, deviations, names)
        found[t] = smoothed.means_of(names)
    return found


def of_observations(lambdas: Array, every: int, seed: int) -> Array:
    """Importance after each observation where one in so many is explained, but for the first hundred."""
    names, smoothed, times = tuple(range(lambdas.shape[1])), SmoothedImportance(ALPHA), 1
    found = np.empty_like(lambdas)
    for t, row in enumerate(lambdas):
        if t < 100 or (t + seed) % every == 0:
            smoothed.update_arrays(names, row, times)
            times = 1
        else:
            times += 1
        found[t] = smoothed.means_of(names)
    return found


def errors(
    lambdas: Array, std_errors: Array, way: Callable[[Array, Any, int], Array], size: Any, repeats: int
) -> Array:
    """Errors by feature, in parts of the largest and the mean standard error of all features evaluated."""
    full = of_observations(lambdas, 1, 0)
    apart = [((way(lambdas, size, seed) - full)[BEGIN:] ** 2).mean(axis=0) for seed in range(repeats)]
    found: Array = np.sqrt(std_errors**2 + np.mean(apart, axis=0))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each stream and share."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.25, 0.5])
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args(argv)
    print("| model, stream | share | largest: features | observations | mean: features | observations |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in args.only:
        case = CASES[name]
        lambdas, std_errors = increments(case)
        for share in args.shares:
            pairs = ((of_features, share), (of_observations, round(1.0 / share)))
            both = [errors(lambdas, std_errors, way, size, args.repeats) for way, size in pairs]
            largest = [f"{found.max() / std_errors.max():.2f}" for found in both]
            mean = [f"{found.mean() / std_errors.mean():.2f}" for found in both]
            print(f"| {case.title} | {share:g} | {' | '.join([*largest, *mean])} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

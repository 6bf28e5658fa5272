"""What a given error costs: estimates of importance against exact values, by the processor time of the estimator.

The model is frozen and the population is a pool of observations: exact values come from all pairs (`expected_pfi`) and
all coalitions (`exact_sage`) of it. Observations are drawn from the pool, and both implementations draw from a
reservoir that holds all of it, so that what is left is the error of the estimator.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from attributary_explainers import IncrementalPFI, IncrementalSAGE, Reservoir, exact_sage, expected_pfi
from attributary_explainers.typing import Features
from benchmarks.speed.loops import Kind, Reference
from benchmarks.speed.subjects import Observation, Subject, agrawal, arf, rbf
from benchmarks.speed.table import OURS, REFERENCE, present

LEARNED = 2000
ALPHA = 1e-9
"""So small that all observations count alike: iXAI, told that nothing changes, takes plain means too."""

TARGET = 200.0
"""How many times less processor time than iXAI's for the same error is aimed at, on forests."""


class WholePool(Reservoir):
    """Holds what it is filled with."""

    name = "whole_pool"

    def update(self, x: Features, rng: np.random.Generator, note: Any = None) -> int | None:
        """See `Reservoir`."""
        if len(self.rows) == self.size:
            return None
        self._mark(len(self.rows), note() if callable(note) else note, len(self.rows) + 1)
        self.rows.append(x)
        return len(self.rows) - 1


@dataclass(frozen=True)
class Case:
    """A forest, what is estimated of it, and how many observations are its population.

    Parameters
    ----------
    permutations
        Valid range >= 1; those that our iSAGE walks, by which its draws are divided: it asks for as many rows as iXAI's
        with one permutation and all draws.
    """

    name: str
    subject: Subject
    kind: Kind
    pool: int
    permutations: int = 1

    @property
    def estimates_sage(self) -> bool:
        """Whether SAGE values are estimated, else PFI."""
        return self.kind.sage > 0


@dataclass(frozen=True)
class Effort:
    """Repeats of each estimate, and the numbers of observations after which its error is taken."""

    repeats: int = 16
    checkpoints: tuple[int, ...] = (50, 100, 200, 400)


AGRAWAL = Subject("arf10", "ARF of 10, Agrawal, d 9", agrawal, partial(arf, 10))
RBF = Subject("arf10-rbf6", "ARF of 10, RBF, d 6", partial(rbf, 6), partial(arf, 10))

CASES = (
    Case("pfi-agrawal-10", AGRAWAL, Kind("iPFI, M 10", pfi=10), 100),
    Case("pfi-agrawal-1", AGRAWAL, Kind("iPFI, M 1", pfi=1), 100),
    Case("sage-rbf-10", RBF, Kind("iSAGE, m 10", sage=10), 100),
    Case("sage-rbf-2x5", RBF, Kind("iSAGE, m 10; ours m 5, 2 permutations", sage=10), 100, permutations=2),
    Case("sage-rbf-5", RBF, Kind("iSAGE, m 5", sage=5), 100),
)


def accuracy(cases: Sequence[Case], effort: Effort, tick: Callable[[str], None]) -> dict[str, Any]:
    """By case: exact values, and by column the error and the processor time after each checkpoint, as plain data."""
    found: dict[str, Any] = {}
    exact: dict[tuple[str, bool], dict[str, float]] = {}
    for case in cases:
        model, pool = prepared(case)
        key = (case.subject.name, case.estimates_sage)
        if key not in exact:
            tick(f"{case.subject.title}: exact values")
            exact[key] = exact_values(case, model, pool)
        of_case: dict[str, Any] = {"exact": exact[key], "columns": {}}
        runs: dict[str, list[tuple[list[float], list[float]]]] = {column: [] for column in present((OURS, REFERENCE))}
        for repeat in range(effort.repeats):
            for column, done in runs.items():  # in turns, as the noise of the machine comes and goes
                tick(f"{case.subject.title}, {case.kind.name}: {column}, {repeat + 1} of {effort.repeats}")
                done.append(estimate(case, column, model, pool, exact[key], effort.checkpoints, seed=repeat + 1))
        for column, done in runs.items():
            squares, spent = (np.array(part) for part in zip(*done, strict=True))
            of_case["columns"][column] = {
                "n": list(effort.checkpoints),
                "error": np.sqrt(squares.mean(axis=0)).tolist(),
                "seconds": np.median(spent, axis=0).tolist(),
            }
        found[case.name] = {**of_case, **compared(of_case["columns"])}
    return found


def prepared(case: Case) -> tuple[Any, list[Observation]]:
    """The model, which learns no more, and the pool."""
    stream, model = case.subject.stream(), case.subject.make()
    for x, y in islice(stream, LEARNED):
        model.learn_one(x, y)
    return model, list(islice(stream, case.pool))


def exact_values(case: Case, model: Any, pool: Sequence[Observation]) -> dict[str, float]:
    """The expectation of the estimates, but for iSAGE's bias."""
    if case.estimates_sage:
        return dict(exact_sage(model, pool, loss=case.subject.loss).importance)
    found = expected_pfi(model, pool, loss=case.subject.loss).importance
    # A draw may be the observation itself, which changes nothing; `expected_pfi` leaves these pairs out.
    return {name: value * (len(pool) - 1) / len(pool) for name, value in found.items()}


def estimate(
    case: Case,
    column: str,
    model: Any,
    pool: Sequence[Observation],
    exact: dict[str, float],
    checkpoints: Sequence[int],
    *,
    seed: int,
) -> tuple[list[float], list[float]]:
    """After each checkpoint the mean square error over the features, and the processor seconds so far."""
    step, importance = _estimator(case, column, model, pool, seed)
    rng = np.random.default_rng(seed)
    chosen = [pool[i] for i in rng.integers(len(pool), size=checkpoints[-1])]
    squares, seconds, spent, start = [], [], 0.0, 0
    for checkpoint in checkpoints:
        began = time.process_time()
        for x, y in chosen[start:checkpoint]:
            step(x, y)
        spent += time.process_time() - began
        start = checkpoint
        found = importance()
        squares.append(float(np.mean([(found[name] - value) ** 2 for name, value in exact.items()])))
        seconds.append(spent)
    return squares, seconds


def _estimator(
    case: Case, column: str, model: Any, pool: Sequence[Observation], seed: int
) -> tuple[Callable[[dict[str, Any], Any], Any], Callable[[], dict[str, float]]]:
    predict = case.subject.predict(model)
    if column == REFERENCE:
        whole = replace(case.kind, reservoir=len(pool))
        reference = Reference(predict, case.subject.loss, whole, pool, static=True, seed=seed)
        return reference.step, lambda: reference.importance[0]
    common: dict[str, Any] = {
        "loss": case.subject.loss,
        "alpha": ALPHA,
        "reservoir": WholePool(len(pool)),
        "seed": seed,
    }
    explainer: IncrementalPFI | IncrementalSAGE
    if case.estimates_sage:
        n, walked = case.kind.sage // case.permutations, case.permutations
        explainer = IncrementalSAGE(model, n_samples=n, n_permutations=walked, **common)
    else:
        explainer = IncrementalPFI(model, n_samples=case.kind.pfi, **common)
    rng = np.random.default_rng(seed)
    for x, _ in pool:
        explainer.imputer.update(x, predict(x), rng)
    return explainer.explain_one, lambda: explainer.importance


def compared(columns: dict[str, Any]) -> dict[str, Any]:
    """How error and time go together, and how much less time ours takes for the error that iXAI ends with.

    Returns
    -------
    `slope`: by column, of log(error) over log(observations); -1/2 where the variance goes with 1 / observations.
    `each`: by column, seconds per observation from the first checkpoint to the last: without what setting up takes.
    `factor`: variance times `each` of iXAI over ours.
    """
    found: dict[str, Any] = {"slope": {}}
    found["each"] = {}
    for column, of_column in columns.items():
        n, seconds = of_column["n"], of_column["seconds"]
        several = len(n) > 1
        found["slope"][column] = float(np.polyfit(np.log(n), np.log(of_column["error"]), 1)[0]) if several else math.nan
        found["each"][column] = (seconds[-1] - seconds[0]) / (n[-1] - n[0]) if several else seconds[0] / n[0]
    if REFERENCE in columns:
        ours, theirs = (_variance(columns[name]) * found["each"][name] for name in (OURS, REFERENCE))
        found["factor"] = theirs / ours
    return found


def _variance(of_column: dict[str, Any]) -> float:
    """Return that of one observation: squared error times observations, the mean over all checkpoints."""
    return float(np.mean(np.array(of_column["n"]) * np.array(of_column["error"]) ** 2))

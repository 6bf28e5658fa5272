"""How late each route is on the same stream: the alarm, the explanation of the change, the shift of an importance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from statistics import median
from typing import Any

import numpy as np
from river import linear_model, preprocessing, tree
from river.datasets import synth

from attributary_explainers import Alarm, ChangeExplainer, ChangeExplanation, ImportanceShift, IncrementalPFI, Shift
from benchmarks.data import Observation

CHANGES_AT = 45_000
N = 60_000
_NEVER = N - CHANGES_AT


def agrawal(seed: int) -> Iterator[Observation]:
    """Function 1 (age, salary) becomes function 2 (age, elevel)."""
    first, second = synth.Agrawal(1, seed=seed), synth.Agrawal(2, seed=seed + 1000)
    return chain(first.take(CHANGES_AT), second.take(N - CHANGES_AT))


def exchanged(seed: int) -> Iterator[Observation]:
    """A logistic rule of four normal inputs and two without weight; the weights of the first two are exchanged."""
    rng = np.random.default_rng(seed)
    weights = np.array([2.0, 0.5, 1.0, -1.0, 0.0, 0.0])
    for n in range(N):
        if n == CHANGES_AT:
            weights[:2] = weights[1::-1]
        row = rng.normal(size=6)
        yield (
            dict(zip("abcdef", row.tolist(), strict=True)),
            bool(rng.random() < 1.0 / (1.0 + math.exp(-row @ weights))),
        )


CASES: dict[str, tuple[Callable[[int], Any], Callable[[int], Iterator[Observation]]]] = {
    "logistic regression, two weights exchanged": (
        lambda _: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
        exchanged,
    ),
    "HAT that still learns, Agrawal 1 → 2": (lambda seed: tree.HoeffdingAdaptiveTreeClassifier(seed=seed), agrawal),
}
ROUTES = ("alarm", "explanation", "importance")


def run_routes(seed: int, *, case: str) -> dict[str, list[int]]:
    """Return where each route has told something."""
    make, stream = CASES[case]
    learner = make(seed)
    change = ChangeExplainer(learner, importances=(), seed=seed)
    pfi, shift = IncrementalPFI(learner, seed=seed), ImportanceShift()
    told: dict[str, list[int]] = {route: [] for route in ROUTES}
    for n, (x, y) in enumerate(stream(seed), start=1):
        y_pred = learner.predict_proba_one(x)
        before = pfi.n_observations
        pfi.explain_one(x, y, y_pred=y_pred)
        learner.learn_one(x, y)
        for event in (*change.update(x, y, y_pred), *change.finish()):
            if isinstance(event, Alarm):
                told["alarm"].append(n)
            elif isinstance(event, ChangeExplanation) and event.is_drift:
                told["explanation"].append(n)
        if pfi.n_observations > before and isinstance(shift.update(*pfi.latest_increments, n), Shift):
            told["importance"].append(n)
    return told


def routes(
    of: Callable[[Callable[[int], Any], Iterable[int]], list[Any]], full: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the row of each model: median delays, streams on which the route told it, and words before the change."""
    runs = 10 if full else 2
    for case in CASES:
        told = of(partial(run_routes, case=case), range(1, 1 + runs))
        parts = []
        for route in ROUTES:
            delays = [min((n for n in one[route] if n > CHANGES_AT), default=N + 1) - CHANGES_AT for one in told]
            found, early = sum(d <= _NEVER for d in delays), sum(n <= CHANGES_AT for one in told for n in one[route])
            after = f"after {median(delays):.0f} " if found > runs / 2 else ""
            parts.append(f"{route} {after}({found} of {runs}; {early} before)")
        yield f"routes beside each other, {case} at {CHANGES_AT}: first word, median", ", ".join(parts), ""

"""What texts among the numbers of a feature cost: the ratio to the same stream without them.

    python -m benchmarks.speed.mixed

Two trees and their explainers take turns in this one process. One gets numbers alone; to the other, a share of one
feature's values is "NA". The model's own work is in both. Of what fails in the model, as River's trees do on a text
where they expect a number, only the explanation is measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from river import naive_bayes, tree

from benchmarks.speed.blocks import Loop, ratio, take_turns
from benchmarks.speed.kinds import Kind
from benchmarks.speed.ours import Ours
from benchmarks.speed.subjects import Observation

SHARES = (0.01, 0.05, 0.5)
KIND = Kind("both, 5", pfi=5, sage=5)
N_BEFORE, N, BLOCK = 1500, 1500, 50

MODELS: dict[str, Callable[[], Any]] = {
    "Hoeffding tree": tree.HoeffdingTreeClassifier,
    "Gaussian naive Bayes": naive_bayes.GaussianNB,
}


class Tolerant:
    """A model that passes over what it fails on."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Learn, where the model can."""
        with suppress(Exception):
            self.model.learn_one(x, y)


def stream(share: float, n: int) -> list[Observation]:
    """Three features, two of which matter; the third is "NA" so often."""
    rng = random.Random(1)
    found: list[Observation] = []
    for _ in range(n):
        a, b, c, u = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1), rng.random()
        found.append(({"a": a, "b": b, "c": "NA" if u < share else c}, a + b > 0))
    return found


def loop(make: Callable[[], Any], share: float) -> Loop:
    """A loop that has had the first observations, and takes those of its own stream in place of what it is given."""
    model = make()
    explainers, learns = Ours(model, "cross_entropy", KIND), Tolerant(model)
    rows = iter(stream(share, N_BEFORE + N))

    def step(_: dict[str, Any], y: Any) -> None:
        x, _ = next(rows)
        with suppress(Exception):
            explainers.step(x, y)
        learns.learn_one(x, y)

    for x, y in stream(share, N_BEFORE):
        step(x, y)
    nothing = Tolerant(None)  # `Loop` lets it learn the numbers
    return Loop(nothing, step)


def main() -> None:
    """Print a line for each model and share."""
    for name, make in MODELS.items():
        loops = {share: loop(make, share) for share in (0.0, *SHARES)}
        times = take_turns(loops, stream(0.0, N_BEFORE + N)[N_BEFORE:], BLOCK, lambda: None)
        alone = 1e6 * sum(times[0.0]) / N
        print(f"{name}: {alone:.0f} us per observation with numbers alone")
        for share in SHARES:
            found = ratio(times[share], times[0.0])
            print(f"  {share:.0%} texts: {found.median:.2f} times ({found.low:.2f} to {found.high:.2f})")


if __name__ == "__main__":
    main()

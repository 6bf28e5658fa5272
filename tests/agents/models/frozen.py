"""A model that does not learn, and a stream of which it becomes wrong."""

from __future__ import annotations

import math
import pickle
import random
from functools import cache

from river import linear_model, optim

from attributary_topics import Observation

FLIPPED_FROM = 11_000


def rule(x: dict[str, float]) -> float:
    """Probability of True."""
    return 1 / (1 + math.exp(-2 * x["a"] - x["b"]))


def made(n: int, seed: int, flipped_from: int | None = FLIPPED_FROM, until: int | None = None) -> list[Observation]:
    """Observations of the rule; 35 % of the labels are flipped between these two; `c` is noise."""
    rng, found = random.Random(seed), []
    for i in range(n):
        x = {name: rng.gauss(0, 1) for name in "abc"}
        y = rng.random() < rule(x)
        flips = rng.random() < 0.35
        if flipped_from is not None and i >= flipped_from and (until is None or i < until):
            y = y != flips
        found.append(Observation("m", x, y))
    return found


@cache
def _file() -> bytes:
    model = linear_model.LogisticRegression(optim.SGD(0.05))
    for one in made(4000, seed=3, flipped_from=None):
        model.learn_one(one.x, one.y)
    return pickle.dumps(model)


def frozen() -> linear_model.LogisticRegression:
    """Has learnt the rule, and comes out of a file."""
    model: linear_model.LogisticRegression = pickle.loads(_file())
    return model

"""Native evaluators of trees: whatever rows share, each has the bits that it has alone, compiled or not."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import ensemble, tree

from attributary_explainers.core import is_compiled
from attributary_explainers.evaluation.registry import make_evaluator
from attributary_explainers.evaluation.schema import Schema
from attributary_explainers.typing import Array

from ..fast_paths.test_trees_upkeep import CLASSIFIERS, QUICK, REGRESSORS
from ..fast_paths.tree_cases import drifting, growing_numbers
from .both_modes import printed_compiled, printed_plainly

MODELS: dict[str, Any] = {
    **CLASSIFIERS,
    "tree, by majority": lambda: tree.HoeffdingTreeClassifier(**QUICK, leaf_prediction="mc"),
    **{f"{name}, numbers": make for name, make in REGRESSORS.items()},
    "bag, numbers": lambda: ensemble.BaggingRegressor(tree.HoeffdingTreeRegressor(grace_period=20), 3, seed=1),
}


def stream_of(name: str, n: int) -> tuple[list[Any], tuple[str, ...]]:
    """Observations for a model, and which of their features are categories."""
    if name.endswith(", numbers"):
        return growing_numbers(n), ()
    return drifting(n // 2, "ab", categories=4) + drifting(n // 2, "abc", categories=6, seed=2), ("colour", "shape")


def blocks(x: Array, past: Array, rng: random.Random) -> Iterator[Array]:
    """Rows as they are made of an observation: one column replaced, walks of several draws, a grid, any."""
    d = len(x)
    drawn = past[[rng.randrange(len(past)) for _ in range(4)]]
    replaced = [x]
    for j in range(d):
        for row in drawn:
            replaced.append(x.copy())
            replaced[-1][j] = row[j]
    yield np.array(replaced)
    walks = [x]
    for order in (rng.sample(range(d), d) for _ in range(2)):
        for size in range(1, d):
            for row in drawn:
                walks.append(row.copy())
                walks[-1][order[:size]] = x[order[:size]]
    yield np.array(walks)
    grid = np.repeat(drawn, 5, axis=0)
    grid[:, 0] = np.tile(past[[rng.randrange(len(past)) for _ in range(5)], 0], len(drawn))
    yield grid
    any_rows = past[[rng.randrange(len(past)) for _ in range(10)]]
    yield np.concatenate([any_rows, any_rows[::-1]])
    gaps = np.array(walks)
    gaps[np.array([[rng.random() < 0.15 for _ in range(d)] for _ in walks])] = np.nan
    yield np.concatenate([gaps, gaps[-3:]])


def followed(name: str, n: int) -> Iterator[tuple[Any, Array, Array, Any]]:
    """The evaluator, some rows, the predictions for them, and the labels, while the model learns."""
    model, (stream, categorical) = MODELS[name](), stream_of(name, n)
    schema, rng = Schema(stream[0][0], categorical), random.Random(3)
    past = schema.encode_many([x for x, _ in stream[: n // 2]])
    evaluator: Any = None
    for step, (x, y) in enumerate(stream):
        model.learn_one(x, y)
        if step % 20 == 0 and step > 20:
            evaluator = evaluator or make_evaluator(model, schema)
            for X in blocks(schema.encode(x), past, rng):
                yield evaluator, X, evaluator.predict(X).copy(), evaluator.labels


@pytest.mark.parametrize("name", MODELS)
def test_each_row_has_the_bits_that_it_has_alone(name: str) -> None:
    differ = 0
    for evaluator, X, found, _ in followed(name, 600):
        for r, row in enumerate(X):
            alone = evaluator.predict(row[None])
            assert alone.tobytes() == found[r : r + 1].tobytes(), r
        differ += len(np.unique(found, axis=0)) > 1
    assert differ > 50


def digest(n: int) -> str:
    """All bits of all predictions of all models."""
    found = []
    for name in MODELS:
        bits = hashlib.sha256()
        for _, _, P, labels in followed(name, n):
            bits.update(P.tobytes() + repr(labels).encode())
        found.append(f"{name} {bits.hexdigest()}")
    return "\n".join(found)


@pytest.mark.skipif(not is_compiled(), reason="the core is not compiled")
def test_the_predictions_are_the_same_compiled_and_plain(tmp_path: Path) -> None:
    script = "from tests.explainers.core.test_trees import digest\nprint(digest(400))"
    found = printed_compiled(script)
    assert len(set(found.splitlines())) == len(MODELS)
    assert printed_plainly(script, tmp_path) == found

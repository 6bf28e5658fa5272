"""A frozen model of fraud that is right about its labels, and files of its rows."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
from river import base

FACTORY = "tests.agents.models.risk:Risk"


class Risk(base.Classifier):
    """Predicts by both columns, as the labels of `rows` are drawn."""

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        """Learn nothing."""

    def predict_proba_one(self, x: dict[str, Any], **kwargs: Any) -> dict[int, float]:
        p = 1.0 / (1.0 + math.exp(2.2 - 1.5 * x["a"] - x["b"]))
        return {0: 1.0 - p, 1: p}


def rows(n: int, seed: int, *, permuted: bool = False) -> list[tuple[float, float, int]]:
    """Return a, b and the label; with `permuted` the best column is another row's."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    y = rng.random(n) < 1.0 / (1.0 + np.exp(2.2 - 1.5 * a - b))
    return list(zip((rng.permutation(a) if permuted else a).tolist(), b.tolist(), y.astype(int).tolist(), strict=True))


def written(path: Path, of: list[tuple[float, float, int]], names: tuple[str, ...] = ("a", "b", "y")) -> Path:
    """Write rows as CSV, the first columns of them; return the file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(row if len(names) == 3 else (row[0], row[2]) for row in of)
    return path

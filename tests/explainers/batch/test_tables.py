"""Batch methods take pairs, or a table and its labels as scikit-learn's functions do: the same importance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from attributary_explainers import ExplainerError, batch_pfi, batch_sage, exact_sage, expected_pfi

RNG = np.random.default_rng(1)
X = pd.DataFrame({"a": RNG.normal(size=20), "b": RNG.integers(0, 9, 20), "city": RNG.choice(["Oslo", "Bern"], 20)})
Y = 2.0 * X["a"] + X["b"]
PAIRS = [(dict(row), y) for row, y in zip(X.to_dict("records"), Y.tolist(), strict=True)]


def model(x: dict[str, Any]) -> float:
    return 2.0 * x["a"] + x["b"]


@pytest.mark.parametrize(
    ("method", "more"), [(batch_pfi, {"seed": 1}), (batch_sage, {"seed": 1}), (expected_pfi, {}), (exact_sage, {})]
)
def test_a_table_and_its_labels_are_what_pairs_are(method: Any, more: dict[str, int]) -> None:
    of_pairs = method(model, PAIRS, loss="squared", **more)
    for table in (X, X.to_dict("records"), (dict(x) for x, _ in PAIRS)):
        for labels in (Y, Y.tolist(), Y.to_numpy()):
            if not hasattr(table, "__next__") or labels is Y:
                assert method(model, table, labels, loss="squared", **more) == of_pairs


def test_labels_that_are_missing_or_too_few_are_named() -> None:
    with pytest.raises(ExplainerError, match=r"y must be the labels of the rows: batch_pfi\(model, X, y\), got None"):
        batch_pfi(model, X, loss="squared")
    with pytest.raises(ExplainerError, match="y must be as long as X, 20 rows, got '19 labels'"):
        batch_sage(model, X, Y[:19], loss="squared")

"""Exact leaves, compiled and as plain Python: the same numbers to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from attributary_explainers.core import is_compiled

from .both_modes import printed_compiled, printed_plainly

SCRIPT = """
import numpy as np
from sklearn.ensemble import (
    GradientBoostingClassifier, HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier,
    RandomForestRegressor,
)
from attributary_explainers import SklearnModel
from attributary_explainers.leaves.exact import coalitions_of, exact_walks
from attributary_explainers.leaves.exact import LeafTable, exact_growth
from attributary_explainers.losses.losses import as_loss

rng = np.random.default_rng(1)
names = list("abcd")
X = rng.normal(size=(60, 4))
X[:, 3] = np.round(X[:, 3]) + 5.0
y = X[:, 0] * X[:, 1] + X[:, 2]
X[::7, 2] = np.nan
two, three = (y > 0.0).astype(int), np.digitize(y, [-0.5, 0.5])
whole = np.where(np.isnan(X), 9.0, X)
cases = [
    (RandomForestClassifier(3, max_depth=4, random_state=1), whole, two, "cross_entropy"),
    (RandomForestClassifier(3, max_depth=4, random_state=1), whole, three, "brier"),
    (RandomForestClassifier(3, max_depth=4, random_state=1), whole, three, "zero_one"),
    (RandomForestRegressor(3, max_depth=4, random_state=1), whole, y, "absolute"),
    (GradientBoostingClassifier(n_estimators=5, random_state=1), whole, three, "cross_entropy"),
    (HistGradientBoostingClassifier(max_iter=5, random_state=1), X, two, "brier"),
    (HistGradientBoostingRegressor(max_iter=5, categorical_features=[3], random_state=1), X, y, "squared"),
    (HistGradientBoostingRegressor(max_iter=5, loss="poisson", random_state=1), X, np.abs(y), "squared"),
]
for estimator, rows, ys, loss in cases:
    model = SklearnModel(estimator.fit(rows, ys), features=names)
    xs = [dict(zip(names, row)) for row in rows.tolist()]
    table = LeafTable(model, xs, ys.tolist(), as_loss(loss))
    grown = exact_growth(table, {**{name: [name] for name in names}, "both": ["a", "b"]})
    print(table.predictions().tobytes().hex(), grown.explained.tobytes().hex(), grown.drawn.tobytes().hex())
    if table.forest.is_additive and not table.as_label:
        players = {name: [name] for name in names}
        walked = exact_walks(coalitions_of(table, players), players, of_drawn=True)
        print(walked.explained.tobytes().hex(), walked.drawn.tobytes().hex())
"""


@pytest.mark.skipif(not is_compiled(), reason="not compiled: there is one mode alone")
def test_importances_by_leaves_are_the_same_as_c_and_as_plain_python(tmp_path: Path) -> None:
    assert printed_plainly(SCRIPT, tmp_path) == printed_compiled(SCRIPT)

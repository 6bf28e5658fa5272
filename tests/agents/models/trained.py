"""A model that is trained, and the observations that come after those that it was trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from benchmarks.models.same import Row
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FEATURES = ["age", "salary", "limit", "noise"]
N_TRAINED, N_ROWS = 300, 75


def _data() -> tuple[pd.DataFrame, list[bool]]:
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(N_TRAINED + N_ROWS, 4)) * [10, 3, 1, 1] + [40, 0, 5, 0], columns=FEATURES)
    score = (X.age - 40) / 10 + X.salary / 3 * (X.limit - 5) + rng.normal(size=len(X)) / 2
    return X, [bool(one) for one in score > 0]


X, Y = _data()
ROWS: list[Row] = [
    (dict(zip(FEATURES, map(float, x), strict=True)), y)
    for x, y in zip(X.to_numpy()[N_TRAINED:], Y[N_TRAINED:], strict=True)
]
ESTIMATORS: dict[str, Any] = {
    "linear": make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": RandomForestClassifier(8, max_depth=4, random_state=1),
}

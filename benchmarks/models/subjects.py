"""The same task for each kind of model: nine numbers, two classes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.foreign import imported, is_real
from support.models.onnx_files import converted
from xgboost import XGBClassifier

from attributary_explainers import OnnxModel, TorchModel

NAMES = [f"x{i}" for i in range(9)]
N_TRAINED = 2000


def table(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Rows of nine numbers, and the class that four of them decide."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(NAMES)))
    y = (x[:, 0] + 0.7 * x[:, 1] - 0.5 * x[:, 2] + 0.3 * x[:, 3] > 0).astype(int)
    return pd.DataFrame(x, columns=NAMES), y


def subjects() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each kind, and what makes the model."""
    x, y = table(N_TRAINED, 1)
    numbers = x.to_numpy()
    logistic, forest = make_pipeline(StandardScaler(), LogisticRegression()), RandomForestClassifier(50, random_state=1)
    trees: dict[str, Any] = {"n_estimators": 100, "n_jobs": 1}
    yield "scikit-learn, pipeline of a logistic regression", lambda: logistic.fit(x, y)
    yield "ONNX of it", lambda: OnnxModel(converted(logistic.fit(numbers, y), numbers, zipmap=False), NAMES)
    yield "scikit-learn, forest of 50", lambda: forest.fit(x, y)
    yield (
        "ONNX of it",
        lambda: OnnxModel(converted(forest.fit(numbers, y), numbers, zipmap=False), NAMES),
    )
    yield "ONNX of it with a ZipMap", lambda: OnnxModel(converted(forest.fit(numbers, y), numbers), NAMES)
    yield "XGBoost, 100 trees", lambda: XGBClassifier(**trees).fit(x, y)
    yield "XGBoost, the booster of it", lambda: XGBClassifier(**trees).fit(x, y).get_booster()
    yield "LightGBM, 100 trees", lambda: LGBMClassifier(**trees, verbose=-1).fit(x, y)
    yield "LightGBM, the booster of it", lambda: LGBMClassifier(**trees, verbose=-1).fit(x, y).booster_
    if is_real("catboost"):
        yield "CatBoost, 100 trees", lambda: _catboost(x, y)
    if is_real("torch"):
        yield "PyTorch, 9-32-1", _network


def _catboost(x: Any, y: Any) -> Any:
    params: dict[str, Any] = {"iterations": 100, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    with imported("catboost") as catboost:
        return catboost.CatBoostClassifier(**params).fit(x, y)


def _network() -> Any:
    with imported("torch") as torch:
        nn = torch.nn
        return TorchModel(nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()), NAMES, [0, 1])


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave warnings of libraries out of what is printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield

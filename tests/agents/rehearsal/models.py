"""Models as somebody has them on the first day, named in configurations as factories."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from river import compose, preprocessing, tree
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier

from attributary_explainers import SklearnModel, as_batch

HERE = "tests.agents.rehearsal.models"

_X = np.random.default_rng(1).normal(size=(100, 2))
_Y = _X[:, 0] > 0


def picky() -> Any:
    """Wants a feature of its own."""
    return compose.FuncTransformer(salary) | tree.HoeffdingTreeClassifier()


def salary(x: dict[str, Any]) -> dict[str, Any]:
    return {"salary": x["salary"]}


def learns_by_partial_fit() -> Any:
    return SGDClassifier(loss="log_loss", random_state=1).fit(_X, _Y)


def unfitted() -> Any:
    return LogisticRegression()


def of_texts() -> Any:
    return LogisticRegression().fit(_X, np.where(_Y, "yes", "no"))


def named() -> Any:
    return SklearnModel(LinearRegression().fit(_X, _X[:, 0]), features=["a", "b"])


def encoded() -> Any:
    """The pipeline that the remedy for text gives."""
    text = compose.SelectType(str) | preprocessing.OneHotEncoder()
    return (text + compose.SelectType(numbers.Number)) | tree.HoeffdingTreeRegressor()


class Homemade:
    """Written in River's manner, and no class of River's."""

    def __init__(self) -> None:
        self.n = {False: 1, True: 1}

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        n = dict(self.n)
        n[x["a"] > 0] += 1
        return {label: n[label] / sum(n.values()) for label in n}

    def learn_one(self, x: dict[str, Any], y: Any) -> None:
        self.n[bool(y)] += 1


def homemade() -> Any:
    return Homemade()


class Unnormalised(Homemade):
    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        return dict.fromkeys(self.n, 2.0)


def unnormalised() -> Any:
    return Unnormalised()


def far_off() -> Any:
    return hundred


def hundred(x: dict[str, Any]) -> float:
    return 100.0


class Leak(Homemade):
    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        raise ValueError(f"cannot handle {x!r}")


def leak() -> Any:
    return Leak()


def price(x: dict[str, Any]) -> float:
    return 2.0 * float(x["a"])


def priced() -> Any:
    return price


def _probabilities(table: Any) -> Any:
    p = 1.0 / (1.0 + np.exp(-table[:, 0]))
    return np.column_stack([1.0 - p, p])


def _seldom(x: dict[str, Any]) -> dict[bool, float]:
    p = 0.1 / (1.0 + abs(x["a"]))
    return {False: 1.0 - p, True: p}


def _seldom_many(rows: list[dict[str, Any]]) -> list[dict[bool, float]]:
    return list(map(_seldom, rows))


def seldom() -> Any:
    return _seldom


def seldom_many() -> Any:
    return as_batch(_seldom_many)


def many_rows() -> Any:
    return as_batch(_probabilities, features=["a", "b"], classes=[False, True])

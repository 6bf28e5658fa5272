"""Reads scikit-learn's tree models without importing scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.leaves import EXPONENTIAL, LOGISTIC, NUMBER, PROBABILITIES, SECOND_OF_TWO, SOFTMAX
from ..models.sklearn import SklearnModel, estimator_input
from ..typing import Array, Features
from .forest import Forest, NotExactError, joined


def read_estimator(model: Any, rows: Sequence[Features]) -> tuple[Forest, Array]:
    """Return an estimator's forest, and the rows as it compares them.

    The rows have the shape (rows, columns).

    Raises
    ------
    NotExactError
        It is of another type, or of a form that is not read.
    """
    estimator = model.estimator if isinstance(model, SklearnModel) else model
    kind = type(estimator)
    read = _KINDS.get(kind.__name__) if kind.__module__.startswith("sklearn.") else None
    if read is None:
        raise NotExactError(f"{kind.__name__} is no forest that can be read")
    if getattr(estimator, "n_outputs_", 1) != 1:
        raise NotExactError("it has more than one output")
    X, names = estimator_input(model, rows)
    X = _preprocessed(estimator, X)
    try:
        numbers = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise NotExactError("a value is no number") from None
    forest: Forest = read(estimator, names)
    if isinstance(model, SklearnModel) and model.classes is not None:
        forest = replace(forest, labels=tuple(model.labels.values()))
    if kind.__name__.startswith("Hist"):
        return forest, numbers
    return forest, numbers.astype(np.float32).astype(np.float64)  # as these trees compare


def _preprocessed(estimator: Any, X: Any) -> Any:
    # What histogram boosting makes of categories before its trees see them; their columns come first.
    if getattr(estimator, "_preprocessor", None) is None:
        return X
    found = np.asarray(estimator._preprocess_X(X, reset=False), dtype=np.float64)
    categorical = np.asarray(estimator.is_categorical_)
    return found if len(categorical) == found.shape[1] else None


def _trees(tree: Any, value: Array) -> tuple[Any, ...]:
    missing = getattr(tree, "missing_go_to_left", None)
    if missing is None:
        missing = np.zeros(tree.node_count)
    return tree.feature, tree.threshold, np.asarray(missing), tree.children_left, tree.children_right, value


def _classes(estimator: Any) -> tuple[Any, ...]:
    return tuple(label.item() if isinstance(label, np.generic) else label for label in estimator.classes_)


def _shares(value: Array) -> Array:
    shares: Array = value[:, 0, :]
    total = shares.sum(axis=1, keepdims=True)
    return shares / np.where(total > 0.0, total, 1.0)


def _classifier(estimator: Any, names: Sequence[Any]) -> Forest:
    classes, members = _classes(estimator), getattr(estimator, "estimators_", [estimator])
    of_two = len(classes) == 2
    values = [_shares(member.tree_.value) for member in members]
    trees = [_trees(m.tree_, v[:, 1:] if of_two else v) for m, v in zip(members, values, strict=True)]
    link = SECOND_OF_TWO if of_two else PROBABILITIES
    base = np.zeros(1 if of_two else len(classes))
    return joined(names, trees, base=base, scale=1.0 / len(members), link=link, labels=classes)


def _regressor(estimator: Any, names: Sequence[Any]) -> Forest:
    members = getattr(estimator, "estimators_", [estimator])
    trees = [_trees(member.tree_, member.tree_.value[:, :, 0]) for member in members]
    return joined(names, trees, base=np.zeros(1), scale=1.0 / len(members))


def _boosting(estimator: Any, names: Sequence[Any]) -> Forest:
    if estimator.init_ != "zero" and not type(estimator.init_).__name__.startswith("Dummy"):
        raise NotExactError("it begins with another model")
    base = np.asarray(estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), np.float32)))[0]
    n_outputs = estimator.estimators_.shape[1]
    trees = []
    for members in estimator.estimators_:
        for k, member in enumerate(members):
            value = np.zeros((member.tree_.node_count, n_outputs))
            value[:, k] = member.tree_.value[:, 0, 0]
            trees.append(_trees(member.tree_, value * estimator.learning_rate))
    more: dict[str, Any] = {"base": base}
    if hasattr(estimator, "classes_"):
        more |= {"link": LOGISTIC if n_outputs == 1 else SOFTMAX, "labels": _classes(estimator), "tie": 1}
        if estimator.loss == "exponential":
            more |= {"base": 2.0 * base, "scale": 2.0}
    return joined(names, trees, **more)


def _histogram_boosting(estimator: Any, names: Sequence[Any]) -> Forest:
    known, place = estimator._bin_mapper.make_known_categories_bitsets()
    base = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    trees, chosen, start = [], {}, 0
    for predictors in estimator._predictors:
        for k, predictor in enumerate(predictors):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            value = np.zeros((len(nodes), len(base)))
            value[:, k] = nodes["value"]
            left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
            column, missing = nodes["feature_idx"], nodes["missing_go_to_left"].astype(bool)
            trees.append((column, nodes["num_threshold"], missing, left, right, value))
            for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf).tolist():
                ours = predictor.raw_left_cat_bitsets[nodes["bitset_idx"][i]]
                chosen[start + i] = _chooser(ours, known[place[column[i]]], bool(missing[i]))
            start += len(nodes)
    more: dict[str, Any] = {"base": base, "chosen": chosen}
    if hasattr(estimator, "classes_"):
        more |= {"link": LOGISTIC if len(base) == 1 else SOFTMAX, "labels": _classes(estimator)}
    else:
        more["link"] = EXPONENTIAL if estimator.loss in ("poisson", "gamma") else NUMBER
    if estimator._preprocessor is not None:
        categorical = np.asarray(estimator.is_categorical_)
        names = [names[i] for i in (*np.flatnonzero(categorical).tolist(), *np.flatnonzero(~categorical).tolist())]
    return joined(names, trees, **more)


def _chooser(left: Any, known: Any, missing_left: bool) -> Callable[[float], bool]:
    """Return a test for going left; unknown categories go as missing ones."""

    def goes_left(value: float) -> bool:
        if value != value or not 0.0 <= value < 256.0:
            return missing_left
        at, bit = divmod(int(value), 32)
        if int(left[at]) >> bit & 1:
            return True
        return False if int(known[at]) >> bit & 1 else missing_left

    return goes_left


_KINDS: dict[str, Callable[[Any, Sequence[Any]], Forest]] = {
    "DecisionTreeClassifier": _classifier,
    "ExtraTreeClassifier": _classifier,
    "DecisionTreeRegressor": _regressor,
    "ExtraTreeRegressor": _regressor,
    "RandomForestClassifier": _classifier,
    "ExtraTreesClassifier": _classifier,
    "RandomForestRegressor": _regressor,
    "ExtraTreesRegressor": _regressor,
    "GradientBoostingClassifier": _boosting,
    "GradientBoostingRegressor": _boosting,
    "HistGradientBoostingClassifier": _histogram_boosting,
    "HistGradientBoostingRegressor": _histogram_boosting,
}

"""An estimator that was fitted to numbers in place of labels gives what one fitted to the labels gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from xgboost import XGBClassifier

from attributary_explainers import IncrementalPFI, InvalidParameterError, ModelError, SklearnModel, batch_pfi
from attributary_explainers.models.function import model_function

LABELS = ["blue", "green", "red"]
NAMES = ["a", "b"]
RNG = np.random.default_rng(1)
X = RNG.normal(size=(300, 2))
CODES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)
TEXTS = [LABELS[code] for code in CODES]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X[:60].tolist()]


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(n_estimators=5, max_depth=3, random_state=1)


@pytest.mark.parametrize("made", [forest, LogisticRegression])
@pytest.mark.parametrize("output", ["probabilities", "label"])
def test_it_predicts_as_one_that_was_fitted_to_the_labels(made: Any, output: Any) -> None:
    coded = SklearnModel(made().fit(X, CODES), features=NAMES, classes=LABELS)
    plain = SklearnModel(made().fit(X, TEXTS), features=NAMES)
    found, expected = (model_function(model, output).many(ROWS) for model in (coded, plain))
    assert found == expected
    assert set(found[0]) <= set(LABELS)


@pytest.mark.parametrize("made", [forest, LogisticRegression])  # from the leaves, and by rows that are mixed
def test_importances_of_a_batch_are_those_of_the_labels(made: Any) -> None:
    coded = SklearnModel(made().fit(X, CODES), features=NAMES, classes=LABELS)
    plain = SklearnModel(made().fit(X, TEXTS), features=NAMES)
    found, expected = (batch_pfi(model, ROWS, TEXTS[:60], seed=1).importance for model in (coded, plain))
    assert found == pytest.approx(expected, rel=1e-12)
    assert max(found.values()) > 0.1


def test_one_of_xgboost_is_explained_by_the_labels_of_the_stream() -> None:
    model = SklearnModel(XGBClassifier(n_estimators=5).fit(X, CODES), features=NAMES, classes=LABELS)
    pfi = IncrementalPFI(model, n_samples=3, seed=1)
    for x, y in zip(ROWS, TEXTS, strict=False):
        pfi.explain_one(x, y)
    assert min(pfi.importance.values()) > 0.1


def test_names_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"classes.*no classifier"):
        SklearnModel(LinearRegression().fit(X, CODES), classes=LABELS)
    model = SklearnModel(LogisticRegression().fit(X, CODES), features=NAMES, classes=LABELS[:2])
    with pytest.raises(ModelError, match="has 3 classes, and classes names 2: name each, in the order of classes_"):
        model_function(model, "probabilities").many(ROWS)
    assert repr(model).endswith("features=['a', 'b'], classes=['blue', 'green'])")

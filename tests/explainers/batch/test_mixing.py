"""Rows that are mixed as arrays, thousands in a call, give what the same rows give one by one, as dicts."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier
from river import compose, linear_model, preprocessing, tree
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from attributary_explainers import SklearnModel, batch_pfi, batch_sage, exact_sage, expected_pfi
from attributary_explainers.batch.mixing import mixer_of
from attributary_explainers.batch.tables import DataTable

N = 6
RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {
        "floor area": RNG.normal(size=150),
        "rooms": RNG.integers(1, 6, 150),
        "city": RNG.choice(["Rome", "Oslo", "Bonn"], 150),
        "age": RNG.normal(size=150),
    }
)
NUMBERS = ["floor area", "rooms", "age"]
DEAR = ((FRAME["floor area"] + (FRAME["city"] == "Rome") + 0.3 * FRAME["age"]) > 0.4).to_numpy()
PRICE = (2.0 * FRAME["floor area"] + FRAME["rooms"] * FRAME["age"]).to_numpy()
SIZE = np.where(FRAME["floor area"] > 0.4, "large", np.where(FRAME["floor area"] > -0.4, "middle", "small"))
ROWS = FRAME.to_dict("records")


def one_by_one(predict, classes=None):
    """A callable that is asked about one row, of which a feature may be lacking; of one it knows it says the same."""
    known = {}

    def model(x):
        row = tuple(sorted(x.items()))
        if row not in known:
            (found,) = predict(pd.DataFrame([x], columns=list(FRAME))).tolist()
            known[row] = found if classes is None else dict(zip(classes, found, strict=True))
        return known[row]

    return model


def with_gaps(rows):
    return [{k: v for k, v in x.items() if (i + len(k)) % 5 or k == "city"} for i, x in enumerate(rows)]


def river_numbers():
    model = preprocessing.StandardScaler() | linear_model.LinearRegression()
    rows = [{name: x[name] for name in NUMBERS} for x in ROWS]
    for x, y in zip(rows, PRICE.tolist(), strict=True):
        model.learn_one(x, y)
    return model, model.predict_one, rows, PRICE, "squared"


def river_texts(loss):
    encode = (compose.Select("city") | preprocessing.OneHotEncoder()) + compose.Select(*NUMBERS)
    model = encode | linear_model.LogisticRegression()
    for x, y in zip(ROWS, DEAR.tolist(), strict=True):
        model.learn_one(x, y)
    return model, model.predict_proba_one, ROWS, DEAR, loss


def river_tree():
    model = tree.HoeffdingTreeClassifier(grace_period=20, delta=0.1, nominal_attributes=["rooms"])
    for x, y in zip(ROWS, SIZE.tolist(), strict=True):
        model.learn_one({name: x[name] for name in NUMBERS}, y)
    rows = [{name: x[name] for name in NUMBERS} for x in ROWS]
    return model, model.predict_proba_one, rows, SIZE, "cross_entropy"


def pipeline():
    columns = make_column_transformer((OneHotEncoder(), ["city"]), remainder=SimpleImputer())
    estimator = make_pipeline(columns, LogisticRegression()).fit(FRAME, DEAR)
    return estimator, one_by_one(estimator.predict_proba, [False, True]), with_gaps(ROWS), DEAR, "cross_entropy"


def array():
    estimator = LinearRegression().fit(FRAME[NUMBERS].to_numpy(), PRICE)

    def predict(x):
        return float(estimator.predict([[x[name] for name in NUMBERS]])[0])

    rows = [dict(reversed([(name, x[name]) for name in NUMBERS])) for x in ROWS]
    return SklearnModel(estimator, features=NUMBERS), predict, rows, PRICE, "absolute"


def detector():
    estimator = IsolationForest(n_estimators=5, random_state=1).fit(FRAME[NUMBERS])
    rows = [{name: x[name] for name in NUMBERS} for x in ROWS]
    predict = one_by_one(lambda table: -estimator.score_samples(table[NUMBERS]))
    return estimator, predict, rows, PRICE, "score"


def booster():
    dtypes = {"city": pd.CategoricalDtype(["Bonn", "Oslo", "Rome"]), "rooms": float}
    few = {"n_estimators": 4, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    y = np.digitize(FRAME["floor area"] + (FRAME["city"] == "Oslo"), [-0.4, 0.4])
    estimator = LGBMClassifier(**few).fit(FRAME.astype(dtypes), y)
    predict = one_by_one(lambda table: estimator.predict_proba(table.astype(dtypes)), [0, 1, 2])
    return estimator, predict, with_gaps(ROWS), y, "brier"


CASES = {
    "river numbers": river_numbers,
    "river texts": lambda: river_texts("brier"),
    "river labels": lambda: river_texts("zero_one"),
    "river tree": river_tree,
    "pipeline": pipeline,
    "array": array,
    "detector": detector,
    "booster": booster,
}
METHODS = {
    "pfi": lambda *args, **kwargs: batch_pfi(*args, n_permutations=2, seed=3, exact=False, **kwargs),
    "sage": lambda *args, **kwargs: batch_sage(*args, n_samples=3, n_permutations=2, seed=3, exact=False, **kwargs),
    "expected pfi": expected_pfi,
    "exact sage": exact_sage,
}
made = cache(lambda case: CASES[case]())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.share(2, "case", "method")
def test_mixed_rows_give_what_single_rows_give(case, method):
    model, alone, rows, y, loss = made(case)
    data = list(zip(rows[:N], y[:N].tolist(), strict=True))
    mixed, single = (DataTable(one, data, loss, None) for one in (model, alone))
    assert len({str(alone(x)) for x in rows[:N]}) > 1, "else every importance is 0"
    assert mixer_of(mixed) is not None
    assert mixer_of(single) is None
    for groups in (None, {"both": ["rooms", "age"]}):
        found, expected = (METHODS[method](one, data, loss=loss, groups=groups) for one in (model, alone))
        assert found.importance == pytest.approx(expected.importance, rel=1e-9, abs=1e-10)
        assert found.std_error == pytest.approx(expected.std_error, rel=1e-7, abs=1e-10)

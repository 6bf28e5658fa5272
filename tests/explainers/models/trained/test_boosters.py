"""XGBoost, LightGBM and CatBoost: estimators and boosters predict what they do on the data frame of their fit.

CatBoost is a stand-in where it is not installed; the tests are the same for both.
"""

import numpy as np
import pandas as pd
import pytest
from lightgbm import Booster as LightBooster
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.datasets import make_classification
from support.foreign import imported
from xgboost import Booster as XBooster
from xgboost import XGBClassifier, XGBRegressor

from attributary_explainers import (
    BoosterModel,
    IncrementalPFI,
    InvalidParameterError,
    ModelError,
    SklearnModel,
    batch_pfi,
    dump_model,
    load_model,
    model_function,
    resolve_loss,
)
from attributary_explainers.models.cost import is_cheap
from attributary_explainers.models.function import model_kind
from attributary_explainers.predictions import predict_rows

RNG = np.random.default_rng(5)
N = 300
NAMES = ["a", "b", "c"]
TABLE = RNG.normal(size=(N, 3))
Y = (TABLE[:, 0] - TABLE[:, 1] > 0).astype(int)
TEXTS = np.where(Y == 1, "yes", "no")
THREE = np.digitize(TABLE[:, 0], [-0.5, 0.5])
ROWS = [dict(zip(NAMES, row, strict=True)) for row in TABLE[:20].tolist()]
TURNED = [dict(reversed(list(row.items()))) for row in ROWS]

CITY = np.where(TABLE[:, 2] > 0, "Rome", "Oslo")
MIXED = pd.DataFrame({"a": TABLE[:, 0], "city": pd.Categorical(CITY), "rooms": RNG.integers(1, 6, N)})
MIXED_Y = ((TABLE[:, 0] > 0) ^ (CITY == "Rome")).astype(int)
MIXED_ROWS = [{"rooms": int(row.rooms), "city": row.city, "a": row.a} for row in MIXED.head(20).itertuples(index=False)]
SMALL = {"n_estimators": 5, "n_jobs": 1}
LIGHT = {**SMALL, "verbose": -1, "min_child_samples": 5}


def xgb(**more):
    return XGBClassifier(**SMALL, **more)


def light(**more):
    return LGBMClassifier(**LIGHT, **more)


def frame(rows=TABLE):
    return pd.DataFrame(rows, columns=NAMES)


def as_rows(classes, probabilities):
    return [pytest.approx(dict(zip(classes, row, strict=True)), abs=1e-6) for row in probabilities.tolist()]


@pytest.mark.parametrize("make", [xgb, light])
@pytest.mark.parametrize("y", [Y, THREE], ids=["two", "three"])
def test_a_classifier_reads_its_columns_by_name(make, y):
    estimator = make().fit(frame(), y)
    assert (model_kind(estimator), resolve_loss(estimator, None).name, is_cheap(estimator)) == (
        "classifier",
        "brier",
        True,
    )
    expected = as_rows(sorted(set(y.tolist())), estimator.predict_proba(frame()[:20]))
    assert predict_rows(model_function(estimator, "probabilities"), TURNED) == expected


@pytest.mark.parametrize("make", [xgb, light])
def test_one_that_was_fitted_on_an_array_takes_the_first_row_for_the_order(make):
    estimator = make().fit(TABLE, Y)
    expected = as_rows([0, 1], estimator.predict_proba(TABLE[:20]))
    assert predict_rows(model_function(estimator, "probabilities"), [ROWS[0], *TURNED[1:]]) == expected
    named = model_function(SklearnModel(estimator, NAMES), "probabilities")
    assert predict_rows(named, TURNED) == expected


@pytest.mark.parametrize("make", [xgb, light])
def test_one_that_is_not_fitted_predicts_nothing(make):
    assert predict_rows(model_function(make(), "probabilities"), ROWS) == [None] * 20


@pytest.mark.parametrize("make", [XGBRegressor, LGBMRegressor])
def test_a_regressor_predicts_numbers(make):
    estimator = make(**(SMALL if make is XGBRegressor else LIGHT)).fit(frame(), TABLE[:, 0])
    assert (model_kind(estimator), resolve_loss(estimator, None).name) == ("regressor", "squared")
    found = predict_rows(model_function(estimator, "number"), TURNED)
    assert found == pytest.approx(estimator.predict(frame()[:20]).tolist(), abs=1e-6)


@pytest.mark.parametrize("make", [lambda: xgb(enable_categorical=True), light])
def test_categories_go_in_as_categories_whatever_else_is_in_the_batch(make):
    estimator = make().fit(MIXED, MIXED_Y)
    expected = as_rows([0, 1], estimator.predict_proba(MIXED[:20]))
    function = model_function(estimator, "probabilities")
    assert predict_rows(function, MIXED_ROWS) == expected
    assert [function(row) for row in MIXED_ROWS] == expected
    assert len({round(p[1], 6) for p in predict_rows(function, [{**MIXED_ROWS[0], "city": c} for c in set(CITY)])}) == 2
    missing = MIXED[:20].assign(city=pd.Categorical([None] * 20, categories=["Oslo", "Rome"]))
    expected = as_rows([0, 1], estimator.predict_proba(missing))
    without = [{name: value for name, value in row.items() if name != "city"} for row in MIXED_ROWS]
    assert predict_rows(function, without) == expected
    assert predict_rows(function, [{**row, "city": None} for row in MIXED_ROWS]) == expected


BOOSTERS = {
    "xgboost two": lambda: xgb().fit(frame(), Y),
    "xgboost three": lambda: xgb().fit(frame(), THREE),
    "xgboost categories": lambda: xgb(enable_categorical=True).fit(MIXED, MIXED_Y),
    "xgboost array": lambda: xgb().fit(TABLE, Y),
    "lightgbm two": lambda: light().fit(frame(), Y),
    "lightgbm three": lambda: light().fit(frame(), THREE),
    "lightgbm categories": lambda: light().fit(MIXED, MIXED_Y),
    "lightgbm array": lambda: light().fit(TABLE, Y),
}


@pytest.mark.parametrize("kind", BOOSTERS)
def test_a_booster_predicts_what_its_estimator_does(kind):
    estimator = BOOSTERS[kind]()
    if kind.startswith("xgboost"):
        booster = XBooster(model_file=bytearray(estimator.get_booster().save_raw("ubj")))
    else:
        booster = LightBooster(model_str=estimator.booster_.model_to_string())
    rows = MIXED_ROWS if "categories" in kind else ([ROWS[0], *TURNED[1:]] if "array" in kind else TURNED)
    asked = MIXED[:20] if "categories" in kind else (TABLE[:20] if "array" in kind else frame()[:20])
    expected = as_rows(estimator.classes_.tolist(), estimator.predict_proba(asked))
    assert (model_kind(booster), resolve_loss(booster, None).name, is_cheap(booster)) == ("classifier", "brier", True)
    assert predict_rows(model_function(booster, "probabilities"), rows) == expected
    model = BoosterModel(booster, None, [f"class {i}" for i in range(len(expected[0].expected))])
    for one in (model, load_model(dump_model(model))):
        found = predict_rows(model_function(one, "probabilities"), rows)
        assert [list(p.values()) for p in found] == [pytest.approx(list(p.expected.values())) for p in expected]
        assert next(iter(found[0])) == "class 0"


@pytest.mark.parametrize("make", [XGBRegressor, LGBMRegressor])
def test_a_booster_of_a_regressor_predicts_numbers(make):
    estimator = make(**(SMALL if make is XGBRegressor else LIGHT)).fit(frame(), TABLE[:, 0])
    booster = estimator.get_booster() if make is XGBRegressor else estimator.booster_
    assert (model_kind(booster), resolve_loss(booster, None).name) == ("regressor", "squared")
    found = predict_rows(model_function(booster, "number"), TURNED)
    assert found == pytest.approx(estimator.predict(frame()[:20]).tolist(), abs=1e-6)
    with pytest.raises(ModelError, match="use the loss absolute or squared"):
        IncrementalPFI(booster, loss="brier")


def test_a_booster_that_gives_labels_alone_has_no_probabilities():
    estimator = xgb(objective="multi:softmax", num_class=3).fit(frame(), THREE)
    booster = estimator.get_booster()
    booster.set_param({"objective": "multi:softmax"})
    booster = XBooster(model_file=bytearray(booster.save_raw("ubj")))
    assert resolve_loss(booster, None).name == "expected_zero_one"
    found = [next(iter(p)) for p in predict_rows(model_function(booster, "label"), TURNED)]
    assert found == estimator.predict_proba(frame()[:20]).argmax(axis=1).tolist()


@pytest.mark.parametrize("make", [xgb, light])
def test_an_observation_takes_one_call(make, monkeypatch):
    estimator, calls = make().fit(frame(), Y), []
    predict = type(estimator).predict_proba
    monkeypatch.setattr(
        type(estimator), "predict_proba", lambda self, X, *a, **k: calls.append(len(X)) or predict(self, X, *a, **k)
    )
    pfi = IncrementalPFI(estimator, n_samples=5, seed=1)
    for row, y in zip(ROWS, Y.tolist(), strict=False):
        importance = pfi.explain_one(row, y)
    assert len(calls) == len(ROWS)
    assert calls[-1] > 10
    assert importance["a"] > importance["c"]


def test_text_where_a_booster_has_no_categories_is_named():
    booster = light().fit(frame(), Y).booster_
    with pytest.raises(ModelError, match="expected a number as feature 'b', got 'x': the booster of lightgbm"):
        model_function(booster, "probabilities")({"a": 1.0, "b": "x", "c": 0.0})
    with pytest.raises(InvalidParameterError, match="a Booster of XGBoost or LightGBM, or a CatBoost"):
        BoosterModel(make_classification)
    with pytest.raises(ModelError, match=r"trained with the columns \['a', 'b', 'c'\], but features are"):
        BoosterModel(booster, ["a", "b", "x"])


@pytest.mark.parametrize("rows_have", [" ", "_"])
def test_lightgbm_writes_an_underscore_for_a_space_and_rows_may_have_either(rows_have):
    spaced = pd.DataFrame(TABLE, columns=["living area", "rooms", "the year"])
    estimator = light().fit(spaced, Y)
    rows = [{name.replace(" ", rows_have): value for name, value in row.items()} for row in spaced.to_dict("records")]
    expected = as_rows([0, 1], estimator.predict_proba(spaced[:20]))
    for model in (estimator, SklearnModel(estimator, list(spaced)), estimator.booster_):
        assert predict_rows(model_function(model, "probabilities"), rows[:20]) == expected
    assert predict_rows(model_function(BoosterModel(estimator.booster_, list(spaced)), "any"), rows[:20]) == expected
    found = batch_pfi(estimator, rows, Y.tolist(), loss="brier", seed=1).importance
    assert list(found) == list(rows[0])
    assert found[f"living{rows_have}area"] > 0.1


def test_a_column_of_one_category_beside_others():
    constant = MIXED.assign(land=pd.Categorical(["Italy"] * N))
    estimator = light().fit(constant, MIXED_Y)
    rows = [{**row, "land": "Italy"} for row in MIXED_ROWS]
    expected = as_rows([0, 1], estimator.predict_proba(constant[:20]))
    assert len({tuple(p.expected.items()) for p in expected}) > 1
    for model in (estimator, estimator.booster_):
        assert predict_rows(model_function(model, "probabilities"), rows) == expected


def test_categories_that_lightgbm_does_not_tell_from_codes_are_refused():
    codes = MIXED.assign(rooms=MIXED["rooms"].astype(int))
    estimator = light().fit(codes, MIXED_Y, categorical_feature=["city", "rooms"])
    with pytest.raises(ModelError, match="does not keep which 1 of its columns were of pandas' dtype category: fit"):
        BoosterModel(estimator.booster_)
    with pytest.raises(ModelError, match="does not keep which 1"):
        model_function(estimator, "probabilities")(MIXED_ROWS[0])


@pytest.mark.parametrize("boosting", ["gbtree", "dart"])
@pytest.mark.parametrize("categories", [["Århus", "Oslo"], [20, 10]])
def test_xgboost_can_be_asked_first_about_a_row_without_a_category(categories, boosting):
    mixed = MIXED.assign(city=pd.Categorical(np.where(CITY == "Rome", *categories)))
    estimator = xgb(enable_categorical=True, booster=boosting).fit(mixed, MIXED_Y)
    expected = as_rows([0, 1], estimator.predict_proba(mixed[:1].assign(city=mixed["city"].where(mixed["city"] == ""))))
    for model in (estimator, estimator.get_booster()):
        assert predict_rows(model_function(model, "probabilities"), [{**MIXED_ROWS[0], "city": None}]) == expected


def test_what_xgboost_says_of_a_row_is_one_line():
    estimator = xgb(enable_categorical=True).fit(MIXED, MIXED_Y)
    for model, said in ((estimator, "XGBClassifier fails"), (estimator.get_booster(), "the booster of xgboost fails")):
        with pytest.raises(ModelError, match=rf"^{said}: Invalid new DataFrame input") as caught:
            model_function(model, "probabilities")({**MIXED_ROWS[0], "city": 7})
        assert "\n" not in str(caught.value)


def test_a_linear_booster_predicts_what_its_estimator_does():
    estimator = XGBRegressor(booster="gblinear", **SMALL).fit(frame(), TABLE[:, 0])
    found = predict_rows(model_function(estimator.get_booster(), "number"), TURNED)
    assert found == pytest.approx(estimator.predict(frame()[:20]).tolist(), abs=1e-6)


@pytest.mark.parametrize("make", [xgb, light])
@pytest.mark.parametrize(("y", "classes"), [(Y, ["a", "b", "c"]), (Y, ["a"]), (THREE, ["a", "b"])])
def test_classes_have_to_be_as_many_as_the_booster_has(make, y, classes):
    estimator = make().fit(frame(), y)
    booster = estimator.get_booster() if make is xgb else estimator.booster_
    with pytest.raises(ModelError, match=rf"has {len(set(y))} classes, and classes names {len(classes)}: name each"):
        BoosterModel(booster, classes=classes)


# CatBoost


@pytest.fixture
def catboost():
    with imported("catboost") as found:
        yield found


MIXED_TEXT = MIXED.assign(city=CITY)
FEW = {"iterations": 5, "verbose": 0, "allow_writing_files": False, "thread_count": 1}


def test_catboost_takes_text_as_it_is_by_the_names_of_its_columns(catboost):
    estimator = catboost.CatBoostClassifier(**FEW, cat_features=["city"]).fit(MIXED_TEXT, MIXED_Y)
    assert (model_kind(estimator), resolve_loss(estimator, None).name) == ("classifier", "brier")
    expected = as_rows([0, 1], estimator.predict_proba(MIXED_TEXT[:20]))
    assert predict_rows(model_function(estimator, "probabilities"), MIXED_ROWS) == expected
    assert [max(p, key=p.get) for p in predict_rows(model_function(estimator, "label"), MIXED_ROWS)] == (
        estimator.predict(MIXED_TEXT[:20]).tolist()
    )
    lacks = [{**row, "a": None} for row in MIXED_ROWS]
    expected = as_rows([0, 1], estimator.predict_proba(MIXED_TEXT[:20].assign(a=np.nan)))
    assert predict_rows(model_function(estimator, "probabilities"), lacks) == expected


def test_catboost_without_names_takes_the_first_row_for_the_order(catboost):
    estimator = catboost.CatBoostClassifier(**FEW).fit(TABLE, Y)
    expected = as_rows([0, 1], estimator.predict_proba(TABLE[:20]))
    assert predict_rows(model_function(estimator, "probabilities"), [ROWS[0], *TURNED[1:]]) == expected
    assert predict_rows(model_function(catboost.CatBoostClassifier(**FEW), "probabilities"), ROWS[:1]) == [None]


@pytest.mark.parametrize("loss", ["Logloss", "RMSE"])
def test_a_catboost_by_itself_is_what_its_loss_function_says(loss, catboost):
    booster = catboost.CatBoost({**FEW, "loss_function": loss, "cat_features": ["city"]}).fit(MIXED_TEXT, MIXED_Y)
    function = model_function(booster, "any")
    if loss == "RMSE":
        assert model_kind(booster) == "regressor"
        assert predict_rows(function, MIXED_ROWS) == pytest.approx(booster.predict(MIXED_TEXT[:20]).tolist())
        return
    assert model_kind(booster) == "classifier"
    expected = booster.predict(MIXED_TEXT[:20], prediction_type="Probability")
    assert predict_rows(function, MIXED_ROWS) == as_rows([0, 1], expected)
    assert BoosterModel(booster).feature_kinds == {"a": "number", "city": "category", "rooms": "number"}


def test_catboost_gives_counts_and_not_their_logarithms(catboost):
    y = np.exp(TABLE[:, 0]).round()
    booster = catboost.CatBoost({**FEW, "loss_function": "Poisson"}).fit(frame(), y)
    found = predict_rows(model_function(booster, "number"), TURNED)
    assert found == pytest.approx(np.exp(booster.predict(frame()[:20])).tolist())


def test_catboost_takes_whole_numbers_as_categories_and_a_missing_number_beside_them(catboost):
    booster = catboost.CatBoost({**FEW, "loss_function": "Logloss", "cat_features": ["rooms"]})
    booster.fit(MIXED_TEXT[["a", "rooms"]], MIXED_Y)
    asked = MIXED_TEXT[["a", "rooms"]][:20]
    rows = [{"a": row["a"], "rooms": row["rooms"]} for row in MIXED_ROWS]
    expected = as_rows([0, 1], booster.predict(asked, prediction_type="Probability"))
    assert predict_rows(model_function(booster, "any"), rows) == expected
    expected = as_rows([0, 1], booster.predict(asked.assign(a=np.nan), prediction_type="Probability"))
    assert predict_rows(model_function(booster, "any"), [{**row, "a": None} for row in rows]) == expected
    table = asked.to_numpy(dtype=object)
    estimator = catboost.CatBoostClassifier(**FEW, cat_features=[1]).fit(table, MIXED_Y[:20])
    expected = as_rows([0, 1], estimator.predict_proba(table))
    assert predict_rows(model_function(estimator, "probabilities"), rows) == expected


def test_a_catboost_that_was_loaded_of_a_file_predicts_as_the_one_that_was_saved(catboost, tmp_path):
    estimator = catboost.CatBoostClassifier(**FEW, cat_features=["city"]).fit(MIXED_TEXT, np.where(MIXED_Y, "y", "n"))
    estimator.save_model(str(tmp_path / "model.cbm"))
    loaded = catboost.CatBoost().load_model(str(tmp_path / "model.cbm"))
    assert model_kind(loaded) == "classifier"
    expected = as_rows(["n", "y"], estimator.predict_proba(MIXED_TEXT[:20]))
    assert predict_rows(model_function(loaded, "any"), MIXED_ROWS) == expected

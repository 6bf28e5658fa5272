"""Pipelines: scalers, selections, one-hot encoders and unions before linear models and before other models."""

from __future__ import annotations

import math
from numbers import Number

import numpy as np
import pytest
from river import compose, feature_selection, linear_model, naive_bayes, neighbors, optim, preprocessing, stats, tree

from attributary_explainers.evaluation.evaluator import NotCoveredError
from attributary_explainers.evaluation.registry import make_evaluator, number_types, read_as_categories
from attributary_explainers.evaluation.schema import NotEncodableError, Schema, categorical_features
from attributary_explainers.fast_paths import pipelines
from attributary_explainers.fast_paths.transformers import Columns, Transformers

from .harness import all_covered, equals_the_model, follow, learnt, predicted, refused
from .streams import agrawal, binary, blobs, line, texts

N = 200

NUMBERS = ("size", "constant")
CATEGORIES = ("colour", "door", "new")


def scaled(*names):
    return compose.Select(*names) | preprocessing.StandardScaler()


def encoded(*names, **parameters):
    return compose.Select(*names) | preprocessing.OneHotEncoder(**parameters)


@pytest.mark.parametrize(
    "transformer",
    [
        preprocessing.StandardScaler(),
        preprocessing.StandardScaler(with_std=False) | preprocessing.StandardScaler(),
        preprocessing.MaxAbsScaler(),
        preprocessing.StandardScaler() | preprocessing.MaxAbsScaler() | preprocessing.StandardScaler(),
        compose.Discard("salary", "age") | preprocessing.StandardScaler(),
        compose.Prefixer("a_") | preprocessing.StandardScaler() | compose.Suffixer("_z"),
        scaled("salary", "age") + (compose.Select("hvalue", "loan") | preprocessing.MaxAbsScaler()),
        preprocessing.RobustScaler() | preprocessing.RobustScaler(with_centering=False),
        preprocessing.RobustScaler(with_scaling=False) | preprocessing.AdaptiveStandardScaler(0.2),
        preprocessing.StandardScaler(window_size=20) | preprocessing.MaxAbsScaler(window_size=5),
        preprocessing.StandardScaler(with_std=False, window_size=7),
        preprocessing.StatImputer(("salary", stats.Mean())) | preprocessing.PreviousImputer() | scaled("salary"),
        compose.Renamer({"salary": "a", "a": "age ", "none": "b"}) | preprocessing.StandardScaler(),
        (compose.Select("salary") | compose.Prefixer("raw_") | preprocessing.MaxAbsScaler()) + scaled("salary", "age"),
    ],
    ids=str,
)
def test_a_transformer_before_logistic_regression(transformer):
    all_covered(transformer | linear_model.LogisticRegression(), agrawal(N // 2, 0, 4))


@pytest.mark.parametrize(
    "chooser",
    [
        feature_selection.SelectKBest(stats.PearsonCorr(), k=2),
        feature_selection.VarianceThreshold(0.8, min_samples=5),
    ],
    ids=str,
)
@pytest.mark.parametrize("inner", [linear_model.LogisticRegression(), naive_bayes.GaussianNB()], ids=str)
def test_features_that_are_chosen_while_the_model_learns(chooser, inner):
    chosen = set()

    def note(_, model):
        chosen.add(tuple(model[0].transform_one({f"x{j}": 1.0 for j in range(4)})))

    stream = ((({**x, "x0": x["x0"] * (i > 60) / 2, "x1": x["x1"] / 4}), y) for i, (x, y) in enumerate(binary(120)))
    all_covered(chooser.clone() | preprocessing.MaxAbsScaler() | inner.clone(), stream, after=note)
    assert len(chosen) > 1


@pytest.mark.parametrize(
    "parameters",
    [{}, {"unknown_value": -3}, {"categories": {name: {"red": 2, "blue": 0.5, 1: 4, False: 3} for name in CATEGORIES}}],
    ids=["plain", "unknown", "categories"],
)
@pytest.mark.parametrize("inner", [linear_model.LogisticRegression(), tree.HoeffdingTreeClassifier(20)], ids=str)
def test_ordinal_encoders(parameters, inner):
    ordinal = compose.Select(*CATEGORIES) | preprocessing.OrdinalEncoder(**parameters)
    all_covered(((ordinal | preprocessing.StandardScaler()) + scaled("size")) | inner.clone(), texts(N))
    all_covered((ordinal + compose.Select("size")) | inner.clone(), texts(60), copy_every=20)


def test_a_category_without_a_number_and_what_is_no_category():
    unknown = preprocessing.OrdinalEncoder(unknown_value=None) | linear_model.LogisticRegression()
    refused("without a number", unknown, with_colour(), to_predict=True)
    numbers = compose.Select("size") | preprocessing.OrdinalEncoder() | linear_model.LogisticRegression()
    refused("no codes", numbers, Schema(["size"]))
    given = preprocessing.OrdinalEncoder(categories={"door": {1: 1}}) | linear_model.LogisticRegression()
    refused("no categories", given, with_colour())


def with_colour():
    schema = Schema(["colour"], ["colour"])
    schema.encode({"colour": "red"})
    return schema


def test_a_window_before_it_has_seen_anything():
    model = preprocessing.MinMaxScaler(window_size=10) | linear_model.LogisticRegression()
    refused("range is not known", model, Schema(["a"]), to_predict=True)
    learnt(model, binary(5))
    all_covered(model, binary(60))


def test_min_and_max_are_not_covered_before_they_are_known():
    # Before the first observation River subtracts infinity, and predicts NaN: so does the fast path.
    all_covered(preprocessing.MinMaxScaler() | linear_model.LogisticRegression(), agrawal(N // 2, 0, 4))


@pytest.mark.parametrize("inner", [linear_model.LinearRegression(), linear_model.PARegressor()])
def test_a_scaler_before_a_regressor(inner):
    all_covered(preprocessing.StandardScaler() | inner, line(N), number=True)


def test_a_scaler_before_softmax_of_many_classes():
    model = preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.1))
    all_covered(model, blobs(N, 6, ("b", "a", "d", "c")))


@pytest.mark.parametrize(
    "parameters",
    [{}, {"drop_zeros": True}, {"categories": {name: {"red", 2, True} for name in CATEGORIES}}],
    ids=["plain", "drop_zeros", "categories"],  # the text of a set is another one in each process
)
@pytest.mark.parametrize("several", [False, True])
def test_scaler_and_one_hot_encoder(parameters, several):
    inner = linear_model.SoftmaxRegression() if several else linear_model.LogisticRegression(optim.SGD(0.1))
    model = (scaled(*NUMBERS) + encoded(*CATEGORIES, **parameters)) | inner
    all_covered(model, texts(N))


def test_one_hot_columns_with_a_prefix_and_a_feature_that_is_both():
    model = (
        (encoded("colour") | compose.Prefixer("c_") | compose.Suffixer("_d"))
        + (compose.Select("door") | compose.Prefixer("no_") | preprocessing.OneHotEncoder())
        + scaled("size")
    ) | linear_model.LogisticRegression(optim.SGD(0.1))
    all_covered(model, texts(N))


def test_a_one_hot_encoder_alone():
    model = preprocessing.OneHotEncoder() | linear_model.LogisticRegression(optim.SGD(0.1))
    stream = (({"colour": x["colour"], "door": x["door"]}, y) for x, y in texts(N))
    # Only once it has learnt does it say which numbers it takes for categories.
    all_covered(model, stream, uncovered=1)


def test_a_number_without_variance_becomes_0():
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    # The first 3.0 meets a variance of 0, and differs from the mean.
    stream = (({"a": 2.0 + (i >= 25), "b": x["x0"]}, y == "a") for i, (x, y) in enumerate(blobs(50, 1, ("a", "b"))))
    all_covered(model, stream, after=lambda _, model: model["LogisticRegression"]._weights.__setitem__("a", 5.0))


def test_a_category_that_the_encoder_is_not_to_know_counts_nothing():
    encoder = preprocessing.OneHotEncoder(categories={name: {"red", 2, True} for name in CATEGORIES})
    model = compose.Select(*CATEGORIES) | encoder | linear_model.LogisticRegression()

    def meddle(_, model):
        model["LogisticRegression"]._weights["colour_blue"] = 3.0
        model["LogisticRegression"]._weights["colour_red"] = 2.0

    all_covered(model, texts(60), after=meddle)


@pytest.mark.parametrize("part", [compose.Select("x0", "x1") | compose.Prefixer("z_"), scaled("x0", "x1")], ids=str)
def test_other_models_see_the_transformed_rows_in_the_order_of_their_names(part):
    all_covered((part + compose.Select("x2")) | naive_bayes.GaussianNB(), blobs(N))


def test_the_model_is_only_read():
    model = (scaled("size") + encoded("colour")) | linear_model.LogisticRegression()
    schema = Schema(["size", "colour"], ["colour"])
    predicted(model, [{"size": 1.0, "colour": "red"}], schema)
    scaler, encoder = model[0].transformers["Pipeline"][1], model[0].transformers["Pipeline1"][1]
    assert not scaler.means
    assert not scaler.vars
    assert not encoder.values
    assert not encoder._zero_dict
    assert not model[-1]._weights.to_dict()


def test_a_step_that_is_added_or_replaced_is_seen():
    def meddle(step, model):
        if step == 20:
            model._add_step(("Other", compose.Select("x0", "x1")), at_start=True)
        if step == 30:
            union = model["TransformerUnion"]
            union.transformers["Select"] = compose.Select("x0")
        if step == 40:
            model.steps["LogisticRegression"] = linear_model.LogisticRegression(intercept_init=1.0)
            model._plan = None

    model = compose.TransformerUnion(compose.Select("x0", "x1")) | linear_model.LogisticRegression(optim.SGD(0.1))
    all_covered(model, binary(60, 3), after=meddle)


def test_a_step_that_comes_before_river_has_made_its_plan_is_seen():
    model = compose.Pipeline(linear_model.LinearRegression(intercept_init=1.0))
    evaluator = make_evaluator(model, Schema(["a"]))
    assert evaluator.predict(np.ones((1, 1))).tolist() == [[1.0]]
    model._add_step(preprocessing.StandardScaler(with_std=False), at_start=True)
    model["StandardScaler"].means["a"] = -1.0
    model["LinearRegression"]._weights["a"] = 3.0
    assert evaluator.predict(np.ones((1, 1))).tolist() == [[7.0]]
    assert model._plan is None
    assert model.predict_one({"a": 1.0}) == 7.0


def test_numbers_that_the_last_step_reads_as_categories_are_refused(monkeypatch):
    model = compose.Select("a") | naive_bayes.GaussianNB()
    make_evaluator(model, Schema(["a", "b"]))
    monkeypatch.setattr(pipelines, "read_as_categories", lambda _: frozenset(["a"]))
    refused("reads as categories", model, Schema(["a", "b"]))


def test_which_numbers_are_categories():
    model = (scaled("size") + encoded("door", "new")) | linear_model.LogisticRegression()
    assert read_as_categories(model) == {"door", "new"}
    model = preprocessing.OneHotEncoder(categories={"door": {1, 2}}) | linear_model.LogisticRegression()
    assert read_as_categories(model) == {"door"}
    assert read_as_categories(compose.Pipeline()) == frozenset()


class Whim(type):
    def __instancecheck__(cls, value):
        return value == 1.0


class Moody(metaclass=Whim):
    pass


@pytest.mark.parametrize(
    ("transformer", "reason"),
    [
        (encoded("colour", drop_first=True), "drop_first"),
        (encoded("size"), "no codes"),
        (encoded("colour") | preprocessing.StandardScaler(), "scaler gets"),
        (scaled("colour"), "scaler gets"),
        (encoded("colour") | compose.Select("colour_red"), "selected"),
        (encoded("colour", categories={"door": {1}}), "no categories"),
        (compose.Select("size") + scaled("size"), "same name"),
        (encoded("colour") + encoded("colour"), "same name"),
        (compose.Select("colour"), "gets categories"),
        (compose.Select("unknown"), "not there"),
        (preprocessing.Normalizer(), "Normalizer"),
        (preprocessing.StatImputer(("unknown", stats.Mean())), "not there"),
        (compose.SelectType(float), "several types"),
        (compose.SelectType(Moody), "decides by itself"),
        (scaled("size") | compose.SelectType(Number), "behind a scaler"),
        (encoded("colour") | compose.SelectType(Number), "selected"),
        (compose.FuncTransformer(dict), "FuncTransformer"),
        (compose.Renamer({"size": "colour"}), "takes the place"),
    ],
    ids=str,
)
def test_what_is_refused(transformer, reason):
    schema = Schema(["size", "colour"], ["colour"])
    schema.encode({"size": 1.0, "colour": "red"})
    refused(reason, transformer | linear_model.LogisticRegression(), schema, to_predict=True)


def canonical(inner):
    """The pipeline that River's documentation shows for numbers and text."""
    numbers = compose.SelectType(Number) | preprocessing.StandardScaler()
    return (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | inner


HOSTILE = (
    True, False, 0, -0.0, 7, 2**53, 2**53 + 1, 1e300, 5e-324, math.nan, math.inf, None, "", "7", "nan", "blue", [1],
    np.float64(0.5), np.int64(3), np.int32(-3), np.bool_(True), np.str_("red"),
)  # fmt: skip


def hostile(n):
    """Rows in which every value of HOSTILE comes in each feature, between plain ones; some rows have other features."""
    plain = [(dict(x), y) for x, y in texts(n)]
    for i, (x, y) in enumerate(plain):
        if i >= 20 and i % 2:
            value = HOSTILE[(i // 2) % len(HOSTILE)]
            name = list(x)[(i // 2 // len(HOSTILE)) % len(x)]
            yield {**x, name: value}, y
        elif i % 38 == 36:
            yield {name: value for name, value in x.items() if name != "colour"}, y
        else:
            yield x, y


@pytest.mark.parametrize(
    "inner",
    [
        linear_model.LogisticRegression(optim.SGD(0.1)),
        linear_model.SoftmaxRegression(optim.SGD(0.1)),
        tree.HoeffdingTreeClassifier(grace_period=20),
        naive_bayes.GaussianNB(),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_numbers_and_text_selected_by_type(inner):
    report = follow(canonical(inner), texts(N))
    # Before other models than linear ones, a category that has not been learnt yet is left to the model.
    assert report.covered > N - (1 if type(inner).__module__.startswith("river.linear_model") else 20), report.reasons


@pytest.mark.parametrize("inner", [linear_model.LinearRegression(), tree.HoeffdingTreeRegressor(grace_period=20)])
def test_numbers_and_text_selected_by_type_before_a_regressor(inner):
    stream = ((x, float(len(str(x["colour"]))) + bool(y)) for x, y in texts(N))
    report = follow(canonical(inner), stream, number=True)
    assert report.covered > N - 20, report.reasons


@pytest.mark.parametrize("inner", [linear_model.LogisticRegression(), tree.HoeffdingTreeClassifier()], ids=str)
def test_hostile_rows_before_what_selects_by_type(inner):
    model = learnt(canonical(inner), texts(60))
    covered = 0
    for x, _ in hostile(2 * len(HOSTILE) * 6):
        categorical = read_as_categories(model) & x.keys() | categorical_features(x)
        schema = Schema(x, categorical, number_types(model))
        rows = [x, {**x, "size": 0.25}]
        try:
            X = schema.encode_many(rows)
            found = make_evaluator(model, schema).predict(X).copy()
        except (NotCoveredError, NotEncodableError):
            continue
        covered += 1
        equals_the_model(found, model, rows)
    assert covered > 100


@pytest.mark.parametrize(("first", "then"), [("red", 3), (3, "red"), (True, "True")])
def test_a_feature_that_is_text_and_number_is_refused_when_it_is_seen(first, then):
    model = learnt(canonical(linear_model.LogisticRegression()), texts(60))
    schema = Schema(["a", "b"], ["a"], number_types(model))
    evaluator_rows = [{"a": first, "b": 1.0}]
    X = schema.encode_many(evaluator_rows)
    if isinstance(first, str):
        evaluator = make_evaluator(model, schema)
        equals_the_model(evaluator.predict(X), model, evaluator_rows)
    else:
        # The scaler would get a category.
        with pytest.raises(NotCoveredError, match="scaler gets"):
            make_evaluator(model, schema)
        return
    again = schema.encode_many([{"a": then, "b": 1.0}, {"a": first, "b": 1.0}])
    for _ in range(2):
        with pytest.raises(NotCoveredError, match="several types"):
            evaluator.predict(again)


def test_a_step_that_is_not_covered_is_not_covered_the_next_time_either():
    union = compose.TransformerUnion(compose.Select("a"))
    model = union | linear_model.LogisticRegression()
    model.predict_proba_one({"a": 1.0})
    evaluator = make_evaluator(model, Schema(["a"]))
    evaluator.predict(np.ones((1, 1)))
    union.transformers["Select"] = preprocessing.Normalizer()
    for _ in range(2):
        with pytest.raises(NotCoveredError, match="Normalizer"):
            evaluator.predict(np.ones((1, 1)))


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ((Number,), {int, float, bool, np.float64, np.float32, np.int64, np.int32}),
        ((int, float), {int, float, bool, np.float64}),
        ((float,), {float, np.float64}),
        ((str,), {int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_}),
        ((), {int, float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_}),
    ],
)
def test_rows_have_the_types_that_are_treated_like_a_float(types, expected):
    model = (compose.SelectType(*types) + compose.Select("b")) | linear_model.LogisticRegression()
    assert number_types(model) == expected


@pytest.mark.parametrize(
    ("inner", "parameters"),
    [
        (naive_bayes.GaussianNB(), {}),
        (naive_bayes.GaussianNB(), {"drop_first": True}),
        (neighbors.KNNClassifier(engine=neighbors.LazySearch(60)), {}),
    ],
    ids=str,
)
def test_one_hot_columns_before_other_models(inner, parameters):
    model = (scaled(*NUMBERS) + (encoded(*CATEGORIES, **parameters) | compose.Prefixer("a_"))) | inner
    report = follow(model, texts(N // 2), n_rows=8)
    # A row with a category that has not been learnt yet has other columns: it is left to the model.
    assert N // 2 - 20 < report.covered < N // 2, report.reasons
    assert any("not learnt" in reason for reason in report.reasons)


def test_given_categories_before_another_model():
    categories = {"colour": {"red", "grey"}, "door": {2}, "new": {True}}
    model = encoded(*CATEGORIES, categories=categories) | naive_bayes.GaussianNB()

    def meddle(step, _):
        if step == 100:
            categories["colour"].discard("red")

    all_covered(model, texts(N), after=meddle)


NUMERIC = (
    (compose.Select("salary", "age") | preprocessing.StandardScaler() | preprocessing.MaxAbsScaler())
    + (compose.Select("hvalue") | preprocessing.MinMaxScaler())
    + (compose.Select("loan", "zipcode") | preprocessing.StandardScaler(with_std=False))
    + compose.Select("car")
)


@pytest.mark.parametrize(
    ("transformer", "stream", "n_learnt"),
    [
        (NUMERIC, agrawal(60), 30),
        *(
            ((encoded("colour", "door", **parameters) | compose.Suffixer("_s")) + scaled("size"), texts(60), 60)
            for parameters in ({}, {"drop_first": True}, {"categories": {"colour": {"red"}, "door": {2}}})
        ),
    ],
    ids=["numbers", "one-hot", "drop_first", "categories"],
)
def test_transformed_rows_are_river_s_to_the_bit(transformer, stream, n_learnt):
    rows = [x for x, _ in stream]
    for x in rows[:n_learnt]:
        transformer.learn_one(x)
    schema = Schema(rows[0], rows[0].keys() & set(CATEGORIES))
    columns = Transformers().apply(transformer, Columns.of(schema, schema.encode_many(rows))).expanded()
    expected = [transformer.transform_one(x) for x in rows]
    assert set(columns.names) == set(expected[0])
    assert columns.Z.tolist() == [[row[name] for name in columns.names] for row in expected]


def test_categories_and_numbers_before_another_model_are_refused():
    for match, transformer in (
        ("drop_zeros", preprocessing.OneHotEncoder(drop_zeros=True)),
        ("no column", compose.Discard("colour")),
        ("no category yet", preprocessing.OneHotEncoder(drop_first=True)),
    ):
        refused(match, transformer | naive_bayes.GaussianNB(), Schema(["colour"], ["colour"]))


def test_pipelines_that_learn_while_they_predict_are_refused():
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    evaluator = make_evaluator(model, Schema(["a"]))
    with compose.learn_during_predict(), pytest.raises(NotCoveredError, match="learn_during_predict"):
        evaluator.predict(np.ones((1, 1)))
    assert evaluator.predict(np.ones((1, 1))).tolist() == [[0.5, 0.5]]


def test_a_parameter_that_is_no_number_is_refused():
    model = learnt(preprocessing.StandardScaler() | linear_model.LogisticRegression(), [({"a": 1.0}, True)])
    model[0].vars["a"] = -1.0
    refused("no number", model, Schema(["a"]), to_predict=True)


def test_the_bits_are_the_same_whether_river_has_made_its_plan_or_not():
    model = learnt(preprocessing.StandardScaler() | linear_model.LogisticRegression(), binary(40))
    X = np.random.default_rng(1).normal(size=(9, 4))
    schema = Schema([f"x{j}" for j in range(4)])
    evaluator = make_evaluator(model, schema)
    found = evaluator.predict(X).copy()
    assert model._plan is not None
    model._plan = None
    for one in (evaluator, make_evaluator(model, schema)):
        assert one.predict(X).tobytes() == found.tobytes()

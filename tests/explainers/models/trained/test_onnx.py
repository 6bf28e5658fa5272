"""Files of ONNX: what they are taken for, what they are given, what they predict, and what is said of the others.

The oracle of what a converted estimator predicts is the estimator itself.
"""

import copy
import json
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
from onnx import TensorProto, helper
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from support.models.onnx_files import converted, graph, linear, with_metadata

from attributary_explainers import (
    IncrementalPFI,
    IncrementalSAGE,
    ModelError,
    OnnxModel,
    dump_model,
    freeze,
    load_model,
    model_function,
    resolve_loss,
)
from attributary_explainers.models.cost import is_cheap
from attributary_explainers.models.function import model_kind
from attributary_explainers.predictions import predict_rows

NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(4)
# In float32, so that the estimator and the file are asked about the same numbers, and trees go the same way.
TABLE = RNG.normal(size=(200, 3)).astype(np.float32).astype(np.float64)
TEXTS = np.where(TABLE[:, 0] + TABLE[:, 1] > 0, "yes", "no")
THREE = np.digitize(TABLE[:, 0], [-0.5, 0.5])
NUMBERS = 2.0 * TABLE[:, 0] - TABLE[:, 1]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in TABLE[:30].tolist()]

TOLERANCE = 2e-6
"""Of probabilities and of their losses: float32 has 24 bits, 6e-8, and a model of a few operations loses some."""

CLASSIFIERS = {
    "logistic": (LogisticRegression(), TEXTS),
    "three classes": (LogisticRegression(), THREE),
    "scaled": (make_pipeline(StandardScaler(), LogisticRegression()), TEXTS),
    "forest": (RandomForestClassifier(n_estimators=5, random_state=1), TEXTS),
    "boosting": (GradientBoostingClassifier(n_estimators=5, random_state=1), THREE),
    "network": (MLPClassifier([4], max_iter=20, random_state=1), TEXTS),
}
FRAME = pd.DataFrame(
    {
        "age": TABLE[:, 0].astype(np.float32),
        "children": (TABLE[:, 1] > 0).astype(np.int64),
        "city": np.where(TABLE[:, 2] > 0, "Rome", "Oslo"),
    }
)
FRAMED = FRAME.to_dict("records")


def mixed():
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "children"]),
            ("texts", OneHotEncoder(handle_unknown="ignore"), ["city"]),
        ]
    )
    return make_pipeline(columns, LogisticRegression()).fit(FRAME, TEXTS)


def close(found, expected):
    return [p == pytest.approx(q, abs=TOLERANCE) for p, q in zip(found, expected, strict=True)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_predicts_what_the_estimator_does_with_its_classes(kind, zipmap):
    estimator, y = CLASSIFIERS[kind]
    estimator.fit(TABLE, y)
    model = OnnxModel(converted(estimator, TABLE, zipmap=zipmap), NAMES)
    assert (model_kind(model), resolve_loss(model, None).name, is_cheap(model)) == ("classifier", "brier", True)
    classes = estimator.classes_.tolist()
    expected = [dict(zip(classes, row, strict=True)) for row in estimator.predict_proba(TABLE[:30]).tolist()]
    found = predict_rows(model_function(model, "probabilities"), ROWS)
    assert all(close(found, expected))
    assert [list(map(type, p)) for p in found[:1]] == [list(map(type, classes))]
    assert [max(p, key=p.get) for p in predict_rows(model_function(model, "label"), ROWS)] == list(
        estimator.predict(TABLE[:30])
    )


@pytest.mark.parametrize("estimator", [LinearRegression(), RandomForestRegressor(n_estimators=5, random_state=1)])
def test_one_column_of_numbers_is_a_regressor(estimator):
    model = OnnxModel(converted(estimator.fit(TABLE, NUMBERS), TABLE), NAMES)
    assert (model_kind(model), resolve_loss(model, None).name) == ("regressor", "squared")
    found = predict_rows(model_function(model, "number"), ROWS)
    assert found == pytest.approx(estimator.predict(TABLE[:30]).tolist(), abs=1e-5)
    assert {type(one) for one in found} == {float}


def test_labels_alone_are_a_classifier_without_probabilities():
    estimator = LinearSVC().fit(TABLE, TEXTS)
    model = onnx.load_model_from_string(converted(estimator, TABLE))
    del model.graph.output[1:]
    model = OnnxModel(model.SerializeToString(), NAMES)
    assert resolve_loss(model, None).name == "expected_zero_one"
    assert [next(iter(p)) for p in predict_rows(model_function(model, "label"), ROWS)] == list(
        estimator.predict(TABLE[:30])
    )
    with pytest.raises(ModelError, match="labels without probabilities"):
        IncrementalPFI(model, loss="brier")


def test_one_column_with_two_classes_is_the_probability_of_the_second():
    content = linear([[1.0], [-2.0]], last="Sigmoid").SerializeToString()
    model = OnnxModel(content, ["a", "b"], classes=[False, True])
    (found,) = predict_rows(model_function(model, "probabilities"), [{"b": 0.5, "a": 3.0}])
    expected = 1 / (1 + np.exp(-2.0))
    assert found == pytest.approx({False: 1 - expected, True: expected}, abs=TOLERANCE)
    assert OnnxModel(content, ["a", "b"]).kind == "regressor"


def test_classes_that_are_given_or_that_the_file_says_name_the_columns():
    content = linear([[1.0, 0.0], [0.0, 1.0]], last="Softmax")
    given = OnnxModel(content.SerializeToString(), ["a", "b"], classes=["low", "high"])
    said = OnnxModel(with_metadata(content, {"attributary.classes": '["low", "high"]'}), ["a", "b"])
    (one,), (other,) = (m.predict_many([{"a": 1.0, "b": 0.0}], "probabilities") for m in (given, said))
    assert one == other == pytest.approx({"low": np.e / (1 + np.e), "high": 1 / (1 + np.e)}, abs=TOLERANCE)


def test_booleans_can_stand_for_the_whole_numbers_that_a_zipmap_has():
    content = converted(LogisticRegression().fit(TABLE, TEXTS == "yes"), TABLE)
    (found,) = OnnxModel(content, NAMES, classes=[False, True]).predict_many(ROWS[:1], "probabilities")
    assert [type(label) for label in found] == [bool, bool]


@pytest.mark.parametrize(
    ("weights", "classes"), [([[1.0, 0.0], [0.0, 1.0]], ["low", "high"]), ([[1.0], [0.0]], [0, 1])]
)
def test_logits_are_no_probabilities(weights, classes):
    model = OnnxModel(linear(weights).SerializeToString(), ["a", "b"], classes=classes)
    with pytest.raises(ModelError, match=r"numbers from .* to 5, which are no probabilities: save it with a Softmax"):
        model.predict_many([{"a": 5.0, "b": -3.0}], "probabilities")


@pytest.mark.parametrize("classes", [["x", "y"], ["no"], ["no", "yes", "x"]])
def test_a_file_that_says_other_classes_than_are_given_names_both(classes):
    model = OnnxModel(converted(LogisticRegression().fit(TABLE, TEXTS), TABLE), NAMES, classes=classes)
    with pytest.raises(ModelError, match=r"gives probabilities of 'no', 'yes', and classes names '.*: leave"):
        model.predict_many(ROWS[:1], "probabilities")


def test_the_label_is_of_the_classes_that_are_given():
    estimator = LogisticRegression().fit(TABLE, THREE)
    model = OnnxModel(converted(estimator, TABLE, zipmap=False), NAMES, classes=[20, 10, 0])
    found = [next(iter(p)) for p in predict_rows(model_function(model, "label"), ROWS)]
    assert found == [20 - 10 * label for label in estimator.predict(TABLE[:30]).tolist()]


# Columns


def test_columns_are_read_by_the_names_that_are_given_or_that_the_file_says():
    content = converted(LinearRegression().fit(TABLE, NUMBERS), TABLE)
    said = converted(
        LinearRegression().fit(TABLE, NUMBERS), TABLE, metadata={"attributary.features": json.dumps(NAMES)}
    )
    turned = [{name: row[name] for name in ("c", "a", "b")} for row in ROWS]
    for model in (OnnxModel(content, NAMES), OnnxModel(said)):
        assert predict_rows(model_function(model, "number"), turned) == pytest.approx(NUMBERS[:30], abs=1e-5)


def test_without_names_the_first_row_gives_the_order_and_it_is_kept_with_the_model():
    model = OnnxModel(converted(LinearRegression().fit(TABLE, NUMBERS), TABLE))
    function = model_function(model, "number")
    turned = [{name: row[name] for name in ("c", "a", "b")} for row in ROWS]
    assert function(ROWS[0]) == pytest.approx(NUMBERS[0], abs=1e-5)
    assert predict_rows(function, turned) == pytest.approx(NUMBERS[:30], abs=1e-5)
    for other in (load_model(dump_model(model)), copy.deepcopy(model)):
        assert predict_rows(model_function(other, "number"), turned) == pytest.approx(NUMBERS[:30], abs=1e-5)
    with pytest.raises(ModelError, match="takes 3 columns, the first row has 2: name its columns"):
        model_function(OnnxModel(model.content), "number")({"a": 1.0, "b": 1.0})


def test_an_input_for_each_column_takes_numbers_and_text_as_a_pipeline_does():
    estimator = mixed()
    model = OnnxModel(converted(estimator, FRAME))
    assert model.feature_kinds == {"age": "number", "children": "number", "city": "category"}
    expected = [dict(zip(["no", "yes"], row, strict=True)) for row in estimator.predict_proba(FRAME).tolist()]
    found = predict_rows(model_function(model, "probabilities"), [dict(reversed(list(row.items()))) for row in FRAMED])
    assert all(close(found, expected))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"age": "old", "children": 1, "city": "Rome"}, "expected a number as feature 'age', got 'old'"),
        ({"age": 1e39, "children": 1, "city": "Rome"}, "a number that float32 can hold as feature 'age'"),
        ({"age": 1.0, "children": 1.5, "city": "Rome"}, "a whole number as feature 'children' of the ONNX model, got"),
        ({"age": 1.0, "city": "Rome"}, "a value .* as feature 'children' of the ONNX model, got nan"),
        ({"age": 1.0, "children": 1, "city": None}, "a text as feature 'city' of the ONNX model, got none"),
        ({"age": 1.0, "children": 1, "city": 7}, "a text as feature 'city' of the ONNX model, got 7"),
        ({"Age": 1.0}, "takes age, children, city, and the observation has Age"),
    ],
)
def test_a_value_that_the_input_does_not_take_is_named(row, said):
    with pytest.raises(ModelError, match=said):
        model_function(OnnxModel(converted(mixed(), FRAME)), "probabilities")(row)


def test_a_number_that_is_missing_is_nan():
    model = OnnxModel(linear([[1.0], [1.0]], last="Abs").SerializeToString(), ["a", "b"])
    for row in ({"a": 1.0}, {"a": 1.0, "b": None}):
        assert np.isnan(model.predict_many([row], "number")[0])


# Calls


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
def test_an_observation_takes_one_call_of_the_session(explainer, monkeypatch):
    model = OnnxModel(converted(LogisticRegression().fit(TABLE, TEXTS), TABLE), NAMES)
    calls = []
    session = model._file.session

    class Counted:
        def run(self, names, feeds):
            calls.append(len(feeds["X"]))
            return session.run(names, feeds)

    monkeypatch.setattr(model._file, "session", Counted())
    subject = explainer(model, n_samples=5, seed=1)
    for row, y in zip(ROWS, TEXTS, strict=False):
        subject.explain_one(row, y)
    assert len(calls) == len(ROWS)
    assert calls[-1] > 10


@pytest.mark.parametrize("explainer", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("kind", ["scaled", "forest", "mixed"])
@pytest.mark.share(2, "kind", "explainer")
def test_importances_are_those_of_the_estimator_to_the_precision_of_float32(kind, explainer):
    """With the same draws. A loss of probabilities is smooth, so its error is a few times theirs."""
    estimator, content, rows = (
        (mixed(), converted(mixed(), FRAME), FRAMED)
        if kind == "mixed"
        else (
            CLASSIFIERS[kind][0].fit(TABLE, TEXTS),
            converted(CLASSIFIERS[kind][0].fit(TABLE, TEXTS), TABLE, zipmap=False),
            [dict(zip(NAMES, row, strict=True)) for row in TABLE.tolist()],
        )
    )
    live, file = (explainer(model, n_samples=5, seed=1, alpha=0.01) for model in (estimator, OnnxModel(content)))
    for row, y in zip(rows, TEXTS, strict=True):
        live.explain_one(row, y)
        file.explain_one(row, y)
    assert file.importance == pytest.approx(live.importance, abs=TOLERANCE)
    assert max(live.importance.values()) > 0.05


# Copies


def test_copies_share_the_session_and_predict_the_same():
    model = OnnxModel(converted(LogisticRegression().fit(TABLE, TEXTS), TABLE), NAMES)
    expected = model.predict_many(ROWS, "probabilities")
    for other in (load_model(dump_model(model)), freeze(model), copy.deepcopy(model), OnnxModel(model.content, NAMES)):
        assert other._file is model._file
        assert other.predict_many(ROWS, "probabilities") == expected
    assert dump_model(load_model(dump_model(model))) == dump_model(model)


# What is refused


def bad_opset():
    model = linear([[1.0]])
    model.opset_import[0].version = 999
    return model


def bad_version():
    model = linear([[1.0]])
    model.ir_version = 999
    return model


def foreign_operator():
    model = linear([[1.0]])
    model.graph.node[0].domain = "mine"
    model.opset_import.append(helper.make_opsetid("mine", 1))
    return model


def outside():
    """Its weights are in a file beside it; anybody may have written which one."""
    model = linear([[1.0], [1.0]])
    one = model.graph.initializer[0]
    one.ClearField("float_data")
    one.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("length", "8")):
        entry = one.external_data.add()
        entry.key, entry.value = key, value
    return model


def several():
    nodes = [helper.make_node("Abs", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    one = (TensorProto.FLOAT, [None, 2])
    return graph(nodes, {"x": one}, {"y": one, "z": one})


HIGHEST = onnx.defs.onnx_opset_version()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"junk", "no ONNX file: save the model again"),
        (b"", "no ONNX file"),
        (bad_opset(), rf"opset 999 of ai.onnx, and onnxruntime {onnxruntime.__version__} knows those up to \d+"),
        (bad_version(), rf"version 999, and onnxruntime {onnxruntime.__version__} reads those up to \d+"),
        (foreign_operator(), "the operator mine:MatMul"),
        (outside(), "its numbers are in another file: save it in one"),
        (several(), r"gives y \(tensor\(float\)\), z \(tensor\(float\)\): expected a label and probabilities"),
        (linear([[1.0, 2.0]]), "has 2 columns and no labels: a classifier needs their names"),
        (linear([[1.0]], shape=[None, 5, "columns"]), "has 3 dimensions: expected rows and columns"),
        (linear([[1.0]], shape=[1, "columns"]), "takes exactly 1 row at a time: convert the model with an open first"),
        (with_metadata(linear([[1.0]]), {"attributary.features": "a, b"}), "expected a JSON list"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_file_that_is_not_understood_says_what_to_do(content, said):
    with pytest.raises(ModelError, match=said) as caught:
        OnnxModel(content if isinstance(content, bytes) else content.SerializeToString())
    assert "\n" not in str(caught.value)


def test_an_input_of_unknown_shape_needs_names():
    model = linear([[1.0], [2.0]])
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(ModelError, match="unknown shape: name the columns in order"):
        OnnxModel(model.SerializeToString())
    assert OnnxModel(model.SerializeToString(), ["a", "b"]).predict_many([{"b": 1.0, "a": 3.0}], "number") == [5.0]


@pytest.mark.parametrize(
    ("features", "classes", "said"),
    [
        (["a", "b"], None, "takes 3 columns, and features names 2"),
        (NAMES, ["low", "middle", "high"], "has 2 columns, and there are 3 classes"),
    ],
)
def test_names_that_do_not_fit_are_refused(features, classes, said):
    content = converted(LogisticRegression().fit(TABLE, TEXTS), TABLE, zipmap=False)
    with pytest.raises(ModelError, match=said):
        OnnxModel(content, features, classes)
    with pytest.raises(ModelError, match="has an input for each of age, children, city"):
        OnnxModel(converted(mixed(), FRAME), ["age", "city", "pets"])


@pytest.mark.parametrize(("package", "said"), [("onnxruntime", r"attributary\[onnx\]"), ("onnx", "pip install onnx")])
def test_a_package_that_is_not_installed_is_named(package, said, monkeypatch):
    content = converted(LogisticRegression().fit(TABLE * 2, TEXTS), TABLE, zipmap=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=said):
        OnnxModel(content, NAMES)

"""scikit-learn estimators: what they are asked, in which columns, and what is refused.

Every warning is an error here: the adapter must not cause those about feature names.
"""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier, SGDOneClassSVM
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from attributary_explainers import (
    IncrementalPFI,
    InvalidParameterError,
    ModelError,
    dump_model,
    freeze,
    is_classifier,
    load_model,
    model_function,
    resolve_loss,
)
from attributary_explainers.models import batch
from attributary_explainers.models.function import model_kind
from attributary_explainers.models.sklearn import SklearnModel
from attributary_explainers.predictions import predict_rows, show_row

pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["a", "b", "c"]
RNG = np.random.default_rng(8)
TABLE = RNG.normal(size=(120, 3))
LABELS = np.where(TABLE[:, 0] + TABLE[:, 1] > 0, "yes", "no")
NUMBERS = 2.0 * TABLE[:, 0] - TABLE[:, 1]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in RNG.normal(size=(25, 3)).tolist()]
ASKED = np.array([[row[name] for name in NAMES] for row in ROWS])
FRAME = pd.DataFrame(TABLE, columns=NAMES)


def cube(y):
    return y**3


ESTIMATORS = [
    ("classifier", "brier", LogisticRegression()),
    ("classifier", "brier", SGDClassifier(loss="log_loss", random_state=1)),
    ("classifier", "expected_zero_one", SGDClassifier(random_state=1)),
    ("classifier", "brier", GaussianNB()),
    ("classifier", "brier", GradientBoostingClassifier(n_estimators=5, random_state=1)),
    ("classifier", "brier", KNeighborsClassifier()),
    ("classifier", "expected_zero_one", SVC()),
    ("classifier", "expected_zero_one", VotingClassifier([("svc", SVC()), ("nb", GaussianNB())])),
    ("classifier", "expected_zero_one", make_pipeline(StandardScaler(), SVC())),
    ("classifier", "brier", make_pipeline(StandardScaler(), LogisticRegression())),
    ("classifier", "brier", GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)),
    ("regressor", "squared", LinearRegression()),
    ("regressor", "squared", RandomForestRegressor(n_estimators=5, random_state=1)),
    ("regressor", "squared", GradientBoostingRegressor(n_estimators=5, random_state=1)),
    ("regressor", "squared", TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=cube)),
    ("regressor", "squared", make_pipeline(StandardScaler(), DecisionTreeRegressor(random_state=1))),
    ("anomaly_detector", "score", IsolationForest(n_estimators=10, random_state=1)),
    ("anomaly_detector", "score", OneClassSVM()),
    ("anomaly_detector", "score", SGDOneClassSVM(random_state=1)),
    ("anomaly_detector", "score", EllipticEnvelope(random_state=1)),
    ("anomaly_detector", "score", LocalOutlierFactor(novelty=True)),
    ("anomaly_detector", "score", make_pipeline(StandardScaler(), IsolationForest(n_estimators=10, random_state=1))),
    ("anomaly_detector", "score", GaussianMixture(2, random_state=1)),
]


def name(case):
    return case if isinstance(case, str) else type(case).__name__


def fit(estimator, table=TABLE):
    """A fitted copy; `table` decides whether it knows the names of its features."""
    return fit_in_place(clone(estimator), table)


def fit_in_place(estimator, table=TABLE):
    targets = {"classifier": (LABELS,), "regressor": (NUMBERS,), "anomaly_detector": ()}
    return estimator.fit(table, *targets[model_kind(estimator)])


def answers(estimator, kind, loss, asked):
    """What scikit-learn says of the rows, in the form that the loss reads."""
    if kind == "anomaly_detector":
        return [-score for score in estimator.score_samples(asked).tolist()]
    if loss == "brier":
        classes = estimator.classes_.tolist()
        return [dict(zip(classes, row, strict=True)) for row in estimator.predict_proba(asked).tolist()]
    predicted = estimator.predict(asked).tolist()
    return [{label: 1.0} for label in predicted] if loss == "expected_zero_one" else predicted


# Without LocalOutlierFactor on a frame: its score_samples hands the bare array on and warns about that.
@pytest.mark.parametrize(
    ("kind", "loss", "estimator", "table"),
    [(*case, TABLE) for case in ESTIMATORS]
    + [(*case, FRAME) for case in ESTIMATORS if not isinstance(case[2], LocalOutlierFactor)],
    ids=name,
)
@pytest.mark.share(2, "estimator", "table")
def test_an_estimator_is_known_for_what_it_is_and_predicts_what_scikit_learn_says(kind, loss, estimator, table):
    estimator = fit(estimator, table)
    assert (model_kind(estimator), resolve_loss(estimator, None).name) == (kind, loss)
    assert is_classifier(estimator) == (kind == "classifier")
    function = model_function(estimator, resolve_loss(estimator, None).output)
    asked = ASKED if table is TABLE else pd.DataFrame(ASKED, columns=NAMES)
    expected = answers(estimator, kind, loss, asked)
    for one, together, said in zip(map(function, ROWS), predict_rows(function, ROWS), expected, strict=True):
        assert one == pytest.approx(said, rel=1e-12, abs=1e-12)
        assert together == pytest.approx(said, rel=1e-12, abs=1e-12)
        values = one if isinstance(one, dict) else {None: one}
        assert [type(value) for value in values.values()] == [float] * len(values)
        assert all(type(label) in (str, type(None)) for label in values)


@pytest.mark.parametrize("estimator", [case[2] for case in ESTIMATORS], ids=name)
def test_an_estimator_that_is_not_fitted_has_no_prediction_until_it_is(estimator):
    estimator = clone(estimator)
    loss = resolve_loss(estimator, None)
    function = model_function(estimator, loss.output)
    assert predict_rows(function, ROWS) == [None] * len(ROWS)
    assert function(ROWS[0]) is None
    pfi = IncrementalPFI(estimator, seed=1)
    for x in ROWS[:3]:
        pfi.explain_one(x, None)
    assert (pfi.n_observations, pfi.n_skipped) == (0, 3)
    fit_in_place(estimator)
    assert None not in predict_rows(function, ROWS)


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (KMeans(), "cluster"),
        (PCA(), "does not say that it is"),
        (StandardScaler(), "does not say that it is"),
        (make_pipeline(StandardScaler(), PCA()), "does not say that it is"),
        (LocalOutlierFactor(), "novelty=True"),
        (LogisticRegression, "is a class, give an instance"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
@pytest.mark.parametrize("loss", [None, "score"])
def test_what_cannot_be_explained_says_why_and_what_would_do(estimator, says, loss):
    with pytest.raises(ModelError, match=says):
        IncrementalPFI(estimator, loss=loss)


@pytest.mark.parametrize(
    ("estimator", "loss", "advice"),
    [
        (
            SVC(),
            "cross_entropy",
            "without probabilities: use the loss expected_zero_one or zero_one",
        ),
        (
            SklearnModel(SVC()),
            "brier",
            "without probabilities: use the loss expected_zero_one or zero_one",
        ),
        (LogisticRegression(), "squared", "brier, cross_entropy, expected_zero_one or zero_one"),
        (LinearRegression(), "cross_entropy", "LinearRegression is a regressor: use the loss absolute or squared"),
        (SklearnModel(LinearRegression()), "zero_one", "LinearRegression is a regressor"),
        (IsolationForest(), "zero_one", "is an anomaly detector: use the loss score"),
    ],
    ids=str,
)
def test_a_loss_that_the_estimator_cannot_serve_is_refused_at_construction(estimator, loss, advice):
    with pytest.raises(ModelError, match=advice):
        IncrementalPFI(estimator, loss=loss)


def test_a_callable_loss_reads_what_the_estimator_has():
    assert resolve_loss(SVC(), lambda y, p: 0.0).output == "label"
    assert resolve_loss(GaussianNB(), lambda y, p: 0.0).output == "probabilities"
    assert resolve_loss(IsolationForest(), lambda y, p: 0.0).output == "number"


def test_a_score_is_larger_where_rows_are_rarer_as_rivers_are():
    for estimator in (IsolationForest(random_state=1), GaussianMixture(1), EllipticEnvelope(random_state=1)):
        function = model_function(fit(estimator), "number")
        assert function({"a": 6.0, "b": -6.0, "c": 6.0}) > function({"a": 0.0, "b": 0.0, "c": 0.0})


# Columns


def reordered(row):
    return {name: row[name] for name in ("c", "a", "b")}


def test_an_estimator_with_names_reads_rows_by_them_whatever_their_order():
    function = model_function(fit(LinearRegression(), FRAME), "number")
    expected = predict_rows(function, ROWS)
    assert predict_rows(function, list(map(reordered, ROWS))) == expected
    assert predict_rows(function, [{"unknown": "x", **row} for row in ROWS]) == expected


def test_an_estimator_without_names_takes_the_first_row_for_the_order_and_names_from_then_on():
    estimator = fit(LinearRegression())
    expected = estimator.predict(ASKED).tolist()
    function = model_function(estimator, "number")
    assert function(ROWS[0]) == pytest.approx(expected[0])
    assert predict_rows(function, list(map(reordered, ROWS))) == pytest.approx(expected)
    other = model_function(estimator, "number")
    assert other(reordered(ROWS[0])) == pytest.approx(estimator.predict(ASKED[:1, [2, 0, 1]])[0])


def test_a_row_can_be_shown_before_one_that_is_made_of_several():
    estimator = fit(LinearRegression())
    function = model_function(estimator, "number")
    show_row(function, ROWS[0])
    assert function(reordered(ROWS[1])) == pytest.approx(estimator.predict(ASKED[1:2])[0])
    show_row(function, reordered(ROWS[0]))  # the order stays
    assert function(ROWS[1]) == pytest.approx(estimator.predict(ASKED[1:2])[0])
    show_row(lambda x: 0.0, ROWS[0])  # nothing to see


def test_features_named_by_the_caller_are_the_order_and_must_be_those_of_the_fit():
    estimator = fit(LinearRegression())
    function = model_function(SklearnModel(estimator, features=NAMES), "number")
    expected = estimator.predict(ASKED).tolist()
    assert predict_rows(function, list(map(reordered, ROWS))) == pytest.approx(expected)
    estimator = fit(LinearRegression(), FRAME)
    same = model_function(SklearnModel(estimator, features=["c", "b", "a"]), "number")
    assert predict_rows(same, ROWS) == pytest.approx(estimator.predict(pd.DataFrame(ASKED, columns=NAMES)).tolist())
    other = model_function(SklearnModel(estimator, features=["x", "b", "a"]), "number")
    with pytest.raises(ModelError, match=r"fitted with the columns \['a', 'b', 'c'\], but features are \['x'"):
        other(ROWS[0])


def test_a_first_row_of_another_width_is_refused_and_not_taken():
    estimator = fit(LinearRegression())
    function = model_function(estimator, "number")
    with pytest.raises(ModelError, match=r"3 features, the first row has 2.*SklearnModel"):
        function({"a": 1.0, "b": 2.0})
    assert function(ROWS[0]) == pytest.approx(estimator.predict(ASKED[:1])[0])


def test_an_order_taken_before_the_fit_from_a_row_that_lacked_something_is_taken_again():
    estimator = LinearRegression()
    function = model_function(estimator, "number")
    assert function({"c": 1.0, "a": 0.0}) is None
    estimator.fit(TABLE, NUMBERS)
    assert function(ROWS[0]) == pytest.approx(estimator.predict(ASKED[:1])[0])
    assert function(reordered(ROWS[1])) == pytest.approx(estimator.predict(ASKED[1:2])[0])


@pytest.mark.parametrize("table", [TABLE, FRAME], ids=["array", "frame"])
@pytest.mark.parametrize(
    "row", [{"a": 1.0, "c": 0.5}, {"a": 1.0, "b": None, "c": 0.5}, {"a": 1, "b": math.nan, "c": 0.5}]
)
def test_a_missing_feature_is_nan_and_the_estimators_affair(table, row):
    forgiving = fit(DecisionTreeClassifier(max_depth=3, random_state=1), table)
    expected = forgiving.predict_proba(
        pd.DataFrame([[1.0, math.nan, 0.5]], columns=NAMES) if table is FRAME else [[1.0, math.nan, 0.5]]
    )
    found = model_function(SklearnModel(forgiving, NAMES), "probabilities")(row)
    assert list(found.values()) == pytest.approx(expected[0].tolist())
    strict = model_function(SklearnModel(fit(LinearRegression(), table), NAMES), "number")
    with pytest.raises(ValueError, match="NaN"):
        strict(row)


MIXED = pd.DataFrame(
    {
        "colour": ["red", "blue", "red", "green"] * 10,
        "size": [1, 2, 3, 4] * 10,
        "weight": [0.5, math.nan, 2.5, 1.0] * 10,
        "old": [True, False, False, True] * 10,
        "code": ["1", "2", "1", "3"] * 10,
    }
)
MIXED_TARGET = [1, 0, 1, 0] * 10


def mixed_pipeline():
    columns = ColumnTransformer(
        [
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["colour", "code"]),
            ("numbers", SimpleImputer(), make_column_selector(dtype_include="number")),
            ("rest", "passthrough", ["old"]),
        ]
    )
    return make_pipeline(columns, LogisticRegression())


def test_columns_of_mixed_kinds_go_in_as_the_frame_that_they_came_from():
    estimator = mixed_pipeline().fit(MIXED, MIXED_TARGET)
    rows = [*MIXED.to_dict("records")[:6], {"old": True, "size": 2, "colour": "never seen", "code": "1"}]
    function = model_function(estimator, "probabilities")
    unseen = pd.DataFrame([["never seen", 2, math.nan, True, "1"]], columns=list(MIXED))
    expected = estimator.predict_proba(pd.concat([MIXED.iloc[:6], unseen]))[:, 1].tolist()
    assert [p[1] for p in predict_rows(function, rows)] == pytest.approx(expected, abs=1e-12)
    assert [function(row)[1] for row in rows] == pytest.approx(expected, abs=1e-12)


def test_a_frame_keeps_the_kind_of_every_column():
    seen = []
    estimator = SimpleNamespace(
        fit=None,
        get_params=None,
        _estimator_type="regressor",
        feature_names_in_=np.array(["i", "f", "b", "s"], dtype=object),
        predict=lambda frame: seen.append(frame) or np.zeros(len(frame)),
    )
    function = model_function(estimator, "number")
    predict_rows(function, [{"i": 1, "f": 0.5, "b": True, "s": "x"}, {"i": 2, "f": 1, "b": False, "s": "7"}])
    estimator.feature_names_in_ = np.array(["i"])
    predict_rows(function, [{"i": 1}, {"i": 2}])
    predict_rows(function, [{"i": 1.5}, {"i": 2.0}])
    kinds = [[dtype.kind for dtype in frame.dtypes] for frame in seen]
    assert [kind[:3] for kind in kinds] == [["i", "f", "b"], ["i"], ["f"]]
    assert seen[0]["s"].tolist() == ["x", "7"]


@pytest.mark.parametrize("others", [1, 1.5])
def test_an_integer_that_64_bits_do_not_hold_is_a_number(others):
    frame = pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 0.0]})
    estimator = LinearRegression().fit(frame, frame["a"])
    (found,) = predict_rows(model_function(estimator, "number"), [{"a": 2**70, "b": others}])
    assert found == pytest.approx(2.0**70)


def test_strings_without_names_go_in_as_objects_and_stay_strings():
    table = MIXED[["colour", "size"]].to_numpy(dtype=object)
    estimator = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()).fit(table, MIXED_TARGET)
    function = model_function(SklearnModel(estimator, ["colour", "size"]), "probabilities")
    rows = [{"size": 2, "colour": "red"}, {"size": 9, "colour": "blue"}]
    expected = estimator.predict_proba(np.array([["red", 2], ["blue", 9]], dtype=object))[:, 0].tolist()
    assert [p[0] for p in predict_rows(function, rows)] == pytest.approx(expected, abs=1e-12)


TEXT = pd.DataFrame({"city": ["Rome", None, "Oslo", "Rome"] * 10, "size": [1.0, math.nan, 3.0, 4.0] * 10})


@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        make_pipeline(SimpleImputer(strategy="constant", fill_value="none", missing_values=np.nan), OneHotEncoder()),
        make_pipeline(SimpleImputer(strategy="most_frequent", missing_values=np.nan), OneHotEncoder()),
    ],
    ids=["missing is a category", "constant", "most frequent"],
)
def test_missing_text_is_what_it_was_in_the_fit_alone_in_its_batch_or_not(encoder):
    columns = ColumnTransformer([("texts", encoder, ["city"]), ("numbers", SimpleImputer(), ["size"])])
    estimator = make_pipeline(columns, LogisticRegression()).fit(TEXT, [1, 0, 1, 0] * 10)
    expected = dict(zip(["Rome", None, "Oslo"], estimator.predict_proba(TEXT.head(3))[:, 1].tolist(), strict=True))
    function = model_function(estimator, "probabilities")
    rows = [{"size": 1.0, "city": "Rome"}, {"city": None, "size": None}, {"size": 3.0, "city": "Oslo"}, {}]
    wanted = [expected["Rome"], expected[None], expected["Oslo"], expected[None]]
    assert [p[1] for p in predict_rows(function, rows)] == pytest.approx(wanted, abs=1e-12)
    assert [function(row)[1] for row in rows] == pytest.approx(wanted, abs=1e-12)
    assert len(set(expected.values())) == 3


def test_columns_of_categories_are_read_as_in_the_fit():
    frame = MIXED.assign(colour=MIXED["colour"].astype("category"), code=MIXED["code"].astype("category"))
    estimator = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2).fit(frame, MIXED_TARGET)
    expected = estimator.predict_proba(frame.head(6))[:, 1].tolist()
    rows = MIXED.to_dict("records")[:6]
    function = model_function(estimator, "probabilities")
    assert [p[1] for p in predict_rows(function, rows)] == pytest.approx(expected, abs=1e-12)
    assert [function(row)[1] for row in rows] == pytest.approx(expected, abs=1e-12)


def test_without_pandas_the_columns_go_in_by_position_and_no_warning_comes(monkeypatch):
    estimator = fit(LogisticRegression(), FRAME)
    expected = [p["yes"] for p in predict_rows(model_function(estimator, "probabilities"), ROWS)]

    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(batch, "importlib", SimpleNamespace(import_module=absent))
    found = predict_rows(model_function(estimator, "probabilities"), list(map(reordered, ROWS)))
    assert [p["yes"] for p in found] == pytest.approx(expected, abs=1e-12)


# Targets and errors


def test_several_targets_are_refused_when_they_show():
    both = np.column_stack([LABELS, LABELS])
    classifier = MultiOutputClassifier(GaussianNB()).fit(TABLE, both)
    with pytest.raises(ModelError, match="classes_"):
        model_function(classifier, "probabilities")(ROWS[0])
    with pytest.raises(ModelError, match=r"expected 1 predictions, one per row, got an array of shape \(1, 2\)"):
        model_function(classifier, "label")(ROWS[0])
    regressor = LinearRegression().fit(TABLE, np.column_stack([NUMBERS, NUMBERS]))
    with pytest.raises(ModelError, match=r"shape \(1, 2\)"):
        model_function(regressor, "number")(ROWS[0])
    column = LinearRegression().fit(TABLE, NUMBERS.reshape(-1, 1))
    assert model_function(column, "number")(ROWS[0]) == pytest.approx(column.predict(ASKED[:1])[0, 0])


def test_an_error_of_the_estimator_that_is_not_about_fitting_is_let_through():
    class Broken(LinearRegression):
        def predict(self, X):
            raise AttributeError("a mistake of its own")

    with pytest.raises(AttributeError, match="of its own"):
        model_function(Broken().fit(TABLE, NUMBERS), "number")(ROWS[0])


@pytest.mark.parametrize(
    ("parameter", "arguments"),
    [
        ("estimator", {"estimator": 3}),
        ("estimator", {"estimator": LinearRegression}),
        ("estimator", {"estimator": lambda x: 0.0}),
        ("features", {"features": "abc"}),
        ("features", {"features": []}),
        ("features", {"features": ["a", "a", "b"]}),
    ],
    ids=["a number", "a class", "a function", "one name", "no name", "a name twice"],
)
def test_parameters_of_the_wrapper_are_checked_by_name(parameter, arguments):
    with pytest.raises(InvalidParameterError) as caught:
        SklearnModel(**{"estimator": LinearRegression(), **arguments})
    assert caught.value.parameter == parameter


def test_an_estimator_in_the_manner_of_scikit_learn_is_known_by_what_it_says():
    def predict(table):
        return [0.0] * len(table)

    duck = SimpleNamespace(fit=None, get_params=None, predict=predict)
    assert model_kind(duck) is None
    assert model_kind(SimpleNamespace(**vars(duck), _estimator_type="regressor")) == "regressor"
    tags = SimpleNamespace(estimator_type="classifier")
    assert model_kind(SimpleNamespace(**vars(duck), __sklearn_tags__=lambda: tags)) == "classifier"
    assert model_kind(SimpleNamespace(**vars(duck), predict_proba=predict, classes_=[0, 1])) == "classifier"
    with pytest.raises(ModelError, match="as_batch"):
        model_function(duck, "number")


@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: SklearnModel(e, NAMES)])
def test_the_estimator_is_neither_copied_nor_changed_and_followed_as_it_learns(wrap):
    estimator = SGDClassifier(loss="log_loss", random_state=1)
    function = model_function(wrap(estimator), "probabilities")
    assert function(ROWS[0]) is None
    estimator.partial_fit(TABLE[:60], LABELS[:60], classes=["no", "yes"])
    before = dump_model(estimator)
    first = function(ROWS[0])["yes"]
    assert dump_model(estimator) == before
    estimator.partial_fit(TABLE[60:], LABELS[60:])
    assert function(ROWS[0])["yes"] == pytest.approx(estimator.predict_proba(ASKED[:1])[0, 1]) != first


@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: SklearnModel(e, NAMES)])
def test_saved_and_frozen_estimators_stay_what_they_were(wrap):
    estimator = SGDClassifier(loss="log_loss", random_state=1).partial_fit(TABLE, LABELS, classes=["no", "yes"])
    model = wrap(estimator)
    expected = predict_rows(model_function(model, "probabilities"), ROWS)
    copies = [freeze(model), load_model(dump_model(model))]
    estimator.partial_fit(-TABLE, LABELS)
    assert predict_rows(model_function(model, "probabilities"), ROWS) != expected
    for copied in copies:
        assert predict_rows(model_function(copied, "probabilities"), ROWS) == expected

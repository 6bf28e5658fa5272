"""Labels of every hashable type, from callables, River and scikit-learn."""

import numpy as np
import pytest
from river import naive_bayes
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from attributary_explainers import IncrementalPFI, ModelError, as_loss, expected_pfi, model_function
from tests.explainers.oracles import POINTS, exact_pfi_of_pairs, small_and_red

X = {"a": 1.0}
PAIRS = [
    ("no", "yes"),
    (0, 1),
    (False, True),
    (1.5, 2.5),
    ((0, "a"), (0, "b")),
    (b"no", b"yes"),
    (frozenset({1}), frozenset({2})),
    (np.str_("no"), np.str_("yes")),
    (np.int64(3), np.int64(4)),
]


@pytest.mark.parametrize(("no", "yes"), PAIRS)
def test_a_label_of_any_hashable_type_has_the_exact_importance(no, yes):
    data = [(x, (no, yes)[small_and_red(x)]) for x in POINTS]
    found = expected_pfi(lambda x: (no, yes)[small_and_red(x)], data, loss="zero_one").importance
    assert found == pytest.approx(exact_pfi_of_pairs(small_and_red), abs=1e-12)


@pytest.mark.parametrize(("no", "yes"), PAIRS)
def test_river_learns_and_predicts_it_and_the_loss_finds_it(no, yes):
    model = naive_bayes.GaussianNB()
    for i in range(20):
        model.learn_one({"a": i % 2 + 0.01 * (i % 5)}, yes if i % 2 else no)
    label = model_function(model, "label")(X)
    assert as_loss("zero_one")(yes, label) == 0.0
    assert as_loss("zero_one")(no, label) == 1.0
    assert as_loss("cross_entropy")(yes, model_function(model, "probabilities")(X)) < 0.1


@pytest.mark.parametrize(
    ("no", "yes", "dtype"),
    [("no", "yes", None), ("no", "yes", object), (0, 1, None), (False, True, None), (-1, 5, np.int8)],
)
def test_scikit_learn_gives_the_builtins_back(no, yes, dtype):
    estimator = LogisticRegression(C=1e6).fit([[-1.0], [1.0]] * 5, np.array([no, yes] * 5, dtype=dtype))
    (label,) = model_function(estimator, "label")(X)
    assert (label, type(label)) == (yes, type(yes))
    probabilities = model_function(estimator, "probabilities")(X)
    assert [(p, type(p)) for p in probabilities] == [(no, type(no)), (yes, type(yes))]
    assert as_loss("zero_one")(yes, {label: 1.0}) == 0.0


def test_the_importance_of_a_boolean_target_is_that_of_an_integer_one():
    table = [[x["size"], x["color"], x["shape"]] for x in POINTS]
    found = []
    for kind in (bool, int, str):
        labels = [kind(small_and_red(x)) for x in POINTS]
        estimator = DecisionTreeClassifier(random_state=1).fit(table, labels)
        data = list(zip(POINTS, labels, strict=True))
        found.append(expected_pfi(estimator, data, loss="zero_one").importance)
    assert found[0] == found[1] == found[2] == pytest.approx(exact_pfi_of_pairs(small_and_red), abs=1e-12)


@pytest.mark.parametrize("value", [[1], {1}, np.array([1, 2]), ([],)])
def test_what_cannot_be_hashed_is_no_label(value):
    with pytest.raises(ModelError, match="hashable"):
        model_function(lambda x: value, "label")(X)


def test_none_is_no_label_but_no_prediction():
    assert model_function(lambda x: None, "label")(X) is None
    pfi = IncrementalPFI(lambda x: None, loss="zero_one", seed=1)
    for i in range(3):
        pfi.explain_one({"a": i}, None)
    assert (pfi.n_observations, pfi.n_skipped) == (0, 3)


@pytest.mark.parametrize("value", [np.array(["red"]), np.str_("red"), np.array("red"), "red"])
def test_a_scalar_of_numpy_is_its_builtin(value):
    assert model_function(lambda x: value, "label")(X) == {"red": 1.0}
    (label,) = model_function(lambda x: value, "label")(X)
    assert type(label) is str


@pytest.mark.parametrize("value", [0.5, 1, True, np.float32(0.5), np.array([0.5]), np.array(2)])
def test_a_number_is_a_float(value):
    number = model_function(lambda x: value, "number")(X)
    assert (type(number), number) == (float, float(value if np.ndim(value) == 0 else value[0]))


def test_probabilities_where_a_label_is_asked_for_give_the_most_probable():
    assert model_function(lambda x: {"red": 0.4, "blue": 0.6}, "label")(X) == {"blue": 1.0}
    assert model_function(lambda x: {}, "label")(X) is None

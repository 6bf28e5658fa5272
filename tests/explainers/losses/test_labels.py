"""Labels that no prediction could match, and labels that are missing, are said at the first observation."""

from __future__ import annotations

import numpy as np
import pytest
from river import linear_model, naive_bayes, tree
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import recall_score

from attributary_explainers import (
    ChangeExplainer,
    IncrementalPFI,
    IncrementalSAGE,
    InvalidParameterError,
    LabelError,
    ModelError,
    Monitor,
    as_batch,
    batch_pfi,
    resolve_loss,
)

X = {"a": 1.0, "b": 2.0}
EXPLAINERS = [IncrementalPFI, IncrementalSAGE]


def of(*classes):
    """A model with these classes."""
    return lambda x: dict.fromkeys(classes, 1.0 / len(classes))


def undecided(rows):
    return np.full((len(rows), 2), 0.5)


class Constant:
    """Predicts the same of everything."""

    def __init__(self, prediction):
        self.prediction = prediction

    def __call__(self, x):
        return self.prediction


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("loss", ["brier", "cross_entropy", "zero_one", "expected_zero_one"])
@pytest.mark.parametrize(
    ("classes", "label", "said"),
    [
        ((False, True), "yes", r"the label 'yes' is a text, and the model's classes are numbers: False"),
        ((0, 1), "1", "is a text, and the model's classes are numbers"),
        (("0", "1"), 1, "is a number, and the model's classes are texts: '0'"),
        (("no", "yes"), np.bool_(True), "is a number, and the model's classes are texts"),
        (("no", "yes"), None, "give y, as in explain_one"),
        (("no", "yes"), ["yes"], "must be hashable"),
    ],
)
def test_a_label_of_another_type_is_an_error_at_the_first_observation(explainer, loss, classes, label, said):
    explaining = explainer(of(*classes), loss=loss, seed=1)
    with pytest.raises(LabelError, match=said):
        explaining.explain_one(X, label)
    assert (explaining.n_observations, explaining.n_skipped) == (0, 0)
    explaining.explain_one(X, classes[0])  # and the right one is taken


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("target", ["yes", "1.5", None, b"1"])
def test_a_target_that_is_no_number_is_an_error_at_the_first_observation(explainer, loss, target):
    explaining = explainer(lambda x: x["a"], loss=loss, seed=1)
    with pytest.raises(LabelError, match=r"give y|must be a number"):
        explaining.explain_one(X, target)


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ((False, True), [0, 1, 1.0, np.bool_(True), np.int64(0), np.float32(1.0)]),
        ((0, 1), [True, np.True_, np.uint8(1)]),
        (("0", "1"), [np.str_("0"), "1"]),
    ],
)
def test_equal_labels_are_one_label_however_they_are_written(classes, labels):
    for label in labels:
        plain = next(known for known in classes if known == label)
        for loss in ("brier", "zero_one", "cross_entropy"):
            assert resolve_loss(of(*classes), loss)(label, {plain: 1.0}) < 1e-9
        IncrementalPFI(of(*classes), loss="brier", seed=1).explain_one(X, label)


@pytest.mark.parametrize(("classes", "label"), [((0, 1), 2), ((False, True), 7), (("a", "b"), "c")])
def test_a_class_that_the_model_does_not_know_is_a_label(classes, label):
    explaining = IncrementalPFI(of(*classes), loss="brier", seed=1)
    for i in range(4):
        explaining.explain_one({"a": i, "b": -i}, label)
    assert explaining.n_observations == 3


def test_none_is_a_label_where_it_is_a_class():
    IncrementalPFI(of("a", None), loss="brier", seed=1).explain_one(X, None)


def test_a_classifier_that_has_seen_no_label_takes_any_and_learns_new_ones():
    model = naive_bayes.GaussianNB()
    explaining = IncrementalPFI(model, seed=1)
    for i, label in enumerate(["a", "b", "a", 3, "a", None]):
        if label is None:
            with pytest.raises(LabelError, match="give y"):
                explaining.explain_one({"a": float(i)}, label)
            break
        explaining.explain_one({"a": float(i)}, label)
        model.learn_one({"a": float(i)}, label)
    assert explaining.n_observations == 4


def test_a_restored_explainer_does_not_begin_again():
    explaining = IncrementalPFI(of("a", "b"), loss="brier", seed=1)
    explaining.explain_one(X, "a")
    again = IncrementalPFI.from_snapshot(explaining.snapshot(), explaining.model)
    assert again.explain_one(X, 3) == explaining.explain_one(X, 3)


def test_a_score_and_a_loss_of_the_user_s_own_read_what_they_like():
    IncrementalPFI(lambda x: 1.0, loss="score", seed=1).explain_one(X)
    IncrementalPFI(lambda x: 1.0, loss=lambda y, p: abs(p), seed=1).explain_one(X)


def test_pretrained_models_and_whole_data_sets_say_it_too():
    river = tree.HoeffdingTreeClassifier()
    sklearn = LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"])
    for _ in range(3):
        river.learn_one(X, "yes")
    for model in (river, sklearn):
        with pytest.raises(LabelError):
            IncrementalPFI(model, seed=1).explain_one(X, 1)
    with pytest.raises(LabelError):
        IncrementalPFI(linear_model.LogisticRegression(), seed=1).explain_one(X, "yes")
    with pytest.raises(LabelError):
        batch_pfi(sklearn, [(X, 1), (X, 0)], seed=1)
    with pytest.raises(LabelError):
        ChangeExplainer(sklearn, seed=1).update(X, 1, {"no": 0.5, "yes": 0.5})


def test_the_loss_of_a_batch_with_classes_follows_from_them():
    model = as_batch(undecided, classes=["no", "yes"])
    assert resolve_loss(model, None).name == "brier"
    with pytest.raises(ModelError, match="use the loss brier"):
        IncrementalPFI(model, loss="squared")
    change = ChangeExplainer(model, seed=1)
    assert change.distance.name == "label"
    for i in range(40):
        change.update({"a": i}, "yes", {"no": 0.5, "yes": 0.5})


def test_a_function_without_a_loss_is_told_the_key_and_what_to_choose_from():
    def price(x):
        return 1.0

    with pytest.raises(ModelError, match=r"what price predicts.*`loss: squared`.*loss=\"squared\".*brier"):
        IncrementalPFI(price)


@pytest.mark.parametrize(("loss", "distance"), [("brier", "number"), ("squared", "label"), ("squared", "probability")])
def test_a_distance_of_what_is_not_predicted_is_refused_when_it_is_made(loss, distance):
    with pytest.raises(InvalidParameterError, match=r"distance must be .*because the loss reads"):
        ChangeExplainer(lambda x: 0.0, loss=loss, distance=distance)


@pytest.mark.parametrize(("prediction", "name"), [({"a": 0.6, "b": 0.4}, "label"), (1.5, "number")])
def test_the_distance_beside_a_loss_of_one_s_own_follows_from_the_first_prediction(prediction, name):
    change = ChangeExplainer(Constant(prediction), loss=lambda y, p: 1.0, window=20, seed=1)
    for i in range(90):  # the reference is asked from the 21st on
        change.update({"a": i}, 1.0, prediction)
    assert change.distance.name == name
    again = ChangeExplainer.from_snapshot(change.snapshot(), change.model, loss=change._measure.loss)
    assert again.distance.name == name
    assert again.update({"a": 1}, 1.0, prediction) == change.update({"a": 1}, 1.0, prediction)


def test_a_monitor_scores_by_the_named_class_and_refuses_one_that_the_model_does_not_know():
    x = np.random.default_rng(1).normal(size=(600, 1))
    y = np.where(x[:, 0] > 1.0, "fraud", "ok")
    model = LogisticRegression().fit(x, y)
    costs = {"cost": {"false_negative": 9, "false_positive": 1}}
    with pytest.raises(InvalidParameterError, match=r"positive must be one of the classes 'fraud', 'ok', got 'yes'$"):
        Monitor().add("m", model, quality=["recall"], positive="yes")
    monitor = Monitor(in_background=False)
    monitor.add("m", model, quality=["recall"], positive="fraud", loss=costs, alpha=0.005)
    rows, labels = x[:400], y[:400].tolist()
    for row, label in zip(rows, labels, strict=True):
        monitor.observe("m", {"x0": float(row[0])}, label)
    found = monitor._models["m"].quality.reference["recall"]
    assert found == pytest.approx(recall_score(labels, model.predict(rows), pos_label="fraud"))
    assert monitor._models["m"].loss.name == "cost(false_negative=9, false_positive=1, positive='fraud')"

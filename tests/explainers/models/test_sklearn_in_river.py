"""River's wrappers of scikit-learn estimators: batches, answers before learning, and the order of classes."""

import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor

from attributary_explainers import IncrementalPFI, ModelError, model_function
from attributary_explainers.predictions import predict_rows
from tests.explainers.models.stand_ins import learn, scaled, stream, wrapped


class CountingSGD(SGDClassifier):
    calls = 0

    def predict_proba(self, X):
        CountingSGD.calls += 1
        return super().predict_proba(X)


def test_a_wrapped_estimator_is_asked_once_per_batch():
    estimator = CountingSGD(loss="log_loss", random_state=1)
    model = learn(scaled(wrapped(estimator, [False, True])), "classifier", stream(40))
    rows = [x for x, *_ in stream(30, seed=2)]
    function = model_function(model, "probabilities")
    expected = [model.predict_proba_one(x) for x in rows]
    CountingSGD.calls = 0
    assert [p[True] for p in predict_rows(function, rows)] == pytest.approx([p[True] for p in expected], abs=1e-12)
    assert CountingSGD.calls == 1


@pytest.mark.parametrize("output", ["probabilities", "label"])
def test_a_wrapped_classifier_that_has_not_learnt_answers_as_river_does(output):
    model = wrapped(SGDClassifier(loss="log_loss"), ["no", "yes"])
    function = model_function(model, output)
    expected = {"no": 0.5, "yes": 0.5} if output == "probabilities" else {"no": 1.0}
    assert predict_rows(function, [{"a": 1.0}, {"a": 2.0}]) == [expected, expected] == [function({"a": 1.0})] * 2


def test_labels_of_a_wrapped_classifier_are_builtins():
    model = learn(wrapped(SGDClassifier(random_state=1), [0, 1]), "classifier", stream(40))
    function = model_function(model, "label")
    rows = [x for x, *_ in stream(5)]
    for prediction in [*map(function, rows), *predict_rows(function, rows)]:
        assert [type(label) for label in prediction] in ([int], [bool])


def test_unsorted_classes_get_the_wrong_probabilities_in_river_and_are_refused():
    model = wrapped(SGDClassifier(loss="log_loss", random_state=1), ["yes", "no"])
    for x, label, _ in stream(200):
        model.learn_one(x, "yes" if label else "no")
    sure = {"a": 9.0, "b": 0.5, "c": 0.5}
    assert model.predict_one(sure) == "yes"
    assert model.predict_proba_one(sure)["yes"] < 0.01  # the reason; where River mends it, the refusal can go
    with pytest.raises(ModelError, match=r"classes=\['no', 'yes'\]"):
        IncrementalPFI(model)
    assert IncrementalPFI(model, loss="zero_one").loss.name == "zero_one"


def test_a_wrapped_estimator_lets_its_errors_through_and_misses_no_feature_silently():
    model = learn(wrapped(SGDRegressor(random_state=1)), "regressor", stream(20))
    function = model_function(model, "number")
    with pytest.raises(KeyError):
        predict_rows(function, [{"a": 1.0, "b": 2.0}])
    with pytest.raises(ValueError, match="NaN"):
        predict_rows(function, [{"a": float("nan"), "b": 2.0, "c": 1.0}])

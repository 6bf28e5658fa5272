"""The change explainer restored at any point of its procedure goes on as if it had never stopped."""

import pickle

import pytest
from river import compose, forest, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import ChangeExplainer, IncrementalPFI, ModelError, SnapshotError
from tests.explainers.oracles import medium_or_large, small_and_red, stagger_stream
from tests.explainers.plain_data import strangers

K = 60
STOPS = range(20, 450, 23)


def classes():
    return [*stagger_stream(small_and_red, 200, 1), *stagger_stream(medium_or_large, 250, 2)]


def numbers():
    return list(synth.FriedmanDrift(drift_type="gsg", position=(150, 300), seed=3, transition_window=10).take(450))


def trees():
    return forest.ARFClassifier(n_models=2, seed=1)


def regressor():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


ADWIN = {"delta": 0.1, "clock": 4}
CASES = {
    "label": (trees, classes, {"groups": {"pair": ["color", "shape"]}, "detector_params": ADWIN}),
    "probability": (trees, classes, {"distance": "probability", "loss": "brier", "detector_params": ADWIN}),
    "loss": (naive_bayes.GaussianNB, classes, {"signal": "loss", "loss": "cross_entropy", "detector_params": ADWIN}),
    "number": (regressor, numbers, {"n_permutations": 2, "detector_params": ADWIN}),
    "hinkley": (regressor, numbers, {"detector": "page_hinkley", "detector_params": {"threshold": 5}}),
}


def step(change, model, x, y):
    """One observation; everything that is published after it."""
    classifier = not isinstance(model, compose.Pipeline)
    y_pred = model.predict_proba_one(x) if classifier else model.predict_one(x)
    model.learn_one(x, y)
    explanation = change.update(x, y, y_pred)
    counts = (change.n_observations, change.n_alarms, change.n_rejected, change.n_explained)
    state = (change.discrepancy, change.n_discrepancy, change.reference_observation, change.is_collecting)
    return repr((explanation, change.reference, counts, state))  # repr tells every bit of a float


@pytest.mark.parametrize("case", list(CASES))
def test_restoring_at_any_point_equals_never_having_stopped(case):
    make_model, make_stream, parameters = CASES[case]
    stream, model = make_stream(), make_model()
    whole = ChangeExplainer(model, window=K, threshold=0.1, seed=4, **parameters)
    trace, stored, phases = [], {}, set()
    for number, (x, y) in enumerate(stream):
        trace.append(step(whole, model, x, y))
        if number in STOPS:
            snapshot = whole.snapshot()
            assert strangers(snapshot) == []
            stored[number] = pickle.dumps((snapshot, model))
            phases.add((whole.reference is not None, whole.is_collecting, whole.n_explained > 0))
    # The stops met the first window, waiting, collecting after an alarm, and waiting after an explanation.
    assert phases >= {(False, True, False), (True, False, False), (True, True, False), (True, False, True)}
    for number, data in stored.items():
        snapshot, model_then = pickle.loads(data)
        restored = ChangeExplainer.from_snapshot(snapshot, model_then)
        assert restored.parameters == whole.parameters
        continued = [step(restored, model_then, x, y) for x, y in stream[number + 1 :]]
        assert continued == trace[number + 1 :]


def test_a_snapshot_is_not_changed_by_what_follows():
    model = trees()
    change = ChangeExplainer(model, window=K, threshold=0.1, detector_params=ADWIN, seed=4)
    stream = classes()
    for x, y in stream[:300]:
        step(change, model, x, y)
    snapshot = change.snapshot()
    before = pickle.dumps(snapshot)
    for x, y in stream[300:]:
        step(change, model, x, y)
    assert pickle.dumps(snapshot) == before


def test_a_snapshot_of_another_class_format_or_loss_is_refused_with_advice():
    snapshot = ChangeExplainer(trees()).snapshot()
    for bad in ({**snapshot, "format": 999}, {**snapshot, "explainer": "pfi"}, {}):
        with pytest.raises(SnapshotError, match="start a new explainer"):
            ChangeExplainer.from_snapshot(bad, trees())
    with pytest.raises(SnapshotError, match="'change'"):
        IncrementalPFI.from_snapshot(snapshot, trees())

    def own(y, prediction):
        return 0.0

    with pytest.raises(SnapshotError, match="zero_one"):
        ChangeExplainer.from_snapshot(snapshot, trees(), loss=own)


def test_a_loss_of_the_users_own_is_passed_again_or_asked_for():
    def own(y, prediction):
        return 1.0 - prediction.get(y, 0.0)

    snapshot = ChangeExplainer(trees(), loss=own).snapshot()
    assert ChangeExplainer.from_snapshot(snapshot, trees(), loss=own).loss.name == "own"
    with pytest.raises(SnapshotError, match="own"):
        ChangeExplainer.from_snapshot(snapshot, trees())


def test_a_model_that_does_not_fit_the_snapshot_is_refused():
    with pytest.raises(ModelError):
        ChangeExplainer.from_snapshot(ChangeExplainer(trees()).snapshot(), regressor())

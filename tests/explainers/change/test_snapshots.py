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


class FrozenConcept:
    """Knows the first concept and learns nothing: with the second, the data change and the model does not."""

    def __call__(self, x):
        return small_and_red(x)

    def learn_one(self, x, y):
        """Learns nothing."""


def regressor():
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


ADWIN = {"delta": 0.1, "clock": 4}
KSWIN = {"alpha": 0.005, "window_size": 60, "stat_size": 20}
# What the stops have to meet: whether there is a reference, whether observations are collected, whether a change has
# been explained.
PHASES = {(False, True, False), (True, False, False), (True, True, False), (True, False, True)}
# A detector that alarms readily, and a threshold above which the model has changed later: collections start again.
RESTLESS = {
    "detector": "page_hinkley",
    "detector_params": {"threshold": 1.0, "delta": 0.0, "min_instances": 5},
    "threshold": 0.3,
}
CASES = {
    "label": (trees, classes, {"groups": {"pair": ["color", "shape"]}, "detector_params": ADWIN}, PHASES),
    "probability": (trees, classes, {"distance": "probability", "loss": "brier", "detector_params": ADWIN}, PHASES),
    "loss": (
        naive_bayes.GaussianNB,
        classes,
        {"signal": "loss", "loss": "cross_entropy", "detector_params": ADWIN},
        PHASES,
    ),
    "number": (regressor, numbers, {"n_permutations": 2, "detector_params": ADWIN}, PHASES),
    "hinkley": (
        regressor,
        numbers,
        {
            "detector": "page_hinkley",
            "detector_params": {"threshold": 5},
            "watch_discrepancy": False,
            "max_restarts": 0,
        },
        PHASES,
    ),
    "paper": (trees, classes, {"detector_params": ADWIN, "watch_discrepancy": False, "max_restarts": 0}, PHASES),
    "discrepancy": (naive_bayes.GaussianNB, classes, {"detector": None}, PHASES),
    "restarts": (trees, classes, {**RESTLESS, "max_restarts": 3}, PHASES),
    "sage": (
        trees,
        classes,
        {"importances": ["sage", "pfi"], "n_samples": 2, "loss": "cross_entropy", "detector_params": ADWIN},
        PHASES,
    ),
    "none": (trees, classes, {"importances": [], "detector_params": ADWIN}, PHASES),
    "batches": (trees, classes, {"batch_size": 7, "detector_params": ADWIN}, PHASES),
    "cooldown": (trees, classes, {"cooldown": 35, "min_observations": 80, "detector_params": ADWIN}, PHASES),
    "kswin": (trees, classes, {"detector": "kswin", "detector_params": KSWIN}, PHASES),
    "versions": (
        naive_bayes.GaussianNB,
        classes,
        {"detector_params": ADWIN, "version": "0"},
        {(False, True, True), (True, True, True), (True, False, True)},
    ),
    "data": (
        FrozenConcept,
        classes,
        {"detector_params": ADWIN, "loss": "zero_one", "distance": "label", "signal": "zero_one", "explain_data": True},
        {(False, True, False), (True, False, False), (True, True, False)},
    ),
}
VERSIONS = {30: "1", 110: "2", 118: "3", 260: "4"}


def step(change, model, number, x, y):
    """One observation; everything that is published after it, and the model from then on."""
    if isinstance(model, compose.Pipeline):
        y_pred = model.predict_one(x)
    else:
        y_pred = model.predict_proba_one(x) if hasattr(model, "predict_proba_one") else model(x)
    model.learn_one(x, y)
    said = [change.update(x, y, y_pred)]
    if change.version is not None and number in VERSIONS:
        model = naive_bayes.GaussianNB()
        for x_then, y_then in classes()[number - 30 : number]:
            model.learn_one(x_then, y_then)
        said.append(change.new_version(model, VERSIONS[number]))
    counts = (change.n_observations, dict(change.n_alarms), change.n_rejected, change.n_explained)
    more = (change.n_restarts, change.n_data_changes, change.rejected, change.version)
    state = (change.discrepancy, change.n_discrepancy, change.reference_observation, change.is_collecting)
    return repr((said, change.reference, counts, more, state)), model  # repr tells every bit of a float


def without_bytes(snapshot):
    """A snapshot but for detector and reference model: equal ones may be pickled to different bytes."""
    reference = {**(snapshot["reference"] or {}), "model": None}
    return repr({**snapshot, "alarms": {**snapshot["alarms"], "detector": None}, "reference": reference})


@pytest.mark.parametrize("case", list(CASES))
def test_restoring_at_any_point_equals_never_having_stopped(case):
    make_model, make_stream, parameters, expected = CASES[case]
    stream, model = make_stream(), make_model()
    whole = ChangeExplainer(model, **{"window": K, "threshold": 0.1, "seed": 4, **parameters})
    trace, stored, phases, waiting = [], {}, set(), set()
    for number, (x, y) in enumerate(stream):
        published, model = step(whole, model, number, x, y)
        trace.append(published)
        if number in STOPS:
            snapshot = whole.snapshot()
            assert strangers(snapshot) == []
            stored[number] = pickle.dumps((snapshot, model))
            phases.add((whole.reference is not None, whole.is_collecting, whole.n_explained > 0))
            waiting.add(len((snapshot["alarms"]["discrepancy"] or {"waiting": []})["waiting"]))
    # The stops met the first window, waiting, collecting after an alarm, and waiting after an explanation.
    assert phases >= expected
    assert len(waiting) > 3 if case == "batches" else waiting == {0}
    assert (whole.n_restarts > 0) >= (case == "restarts")
    assert (whole.n_data_changes > 0) == (case == "data")
    # Every stop of the first five cases, every fourth of the others, which differ from them in one thing each.
    for number, data in list(stored.items())[:: 1 if case in list(CASES)[:5] else 4]:
        snapshot, model_then = pickle.loads(data)
        restored = ChangeExplainer.from_snapshot(snapshot, model_then)
        assert restored.parameters == whole.parameters
        assert without_bytes(restored.snapshot()) == without_bytes(snapshot)
        for later, (x, y) in enumerate(stream[number + 1 :], start=number + 1):
            published, model_then = step(restored, model_then, later, x, y)
            assert published == trace[later]


class Switching:
    """Predicts a feature, and another one from every 150th observation on: explained changes, without end."""

    def __init__(self):
        self.n_learnt = 0

    def __call__(self, x):
        return x["size" if self.n_learnt // 150 % 2 else "color"] == 0

    def learn_one(self, x, y):
        self.n_learnt += 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"detector_params": {"delta": 0.1}},
        {"detector": "ddm"},
        {"detector": None, "batch_size": 50},
        {"detector": "hddm_w", "explain_data": True, "cooldown": 100},
    ],
    ids=["adwin", "ddm", "discrepancy", "data"],
)
def test_the_snapshot_of_a_long_stream_is_bounded(parameters):
    model = Switching()
    change = ChangeExplainer(
        model, **{"window": 30, "loss": "zero_one", "distance": "label", "signal": "zero_one", "seed": 1, **parameters}
    )
    sizes = []
    points = stagger_stream(small_and_red, 1000, 1)
    for number in range(20_000):
        x, y = points[number % 1000]
        y_pred = model(x)
        model.learn_one(x, y)
        change.update(x, y, y_pred)
        if number >= 1000 and number % 97 == 0:
            sizes.append(len(pickle.dumps(change.snapshot())))
    assert change.n_explained > 60
    # Sizes come and go with what waits and with the detector's window; they do not grow.
    tenth = len(sizes) // 10
    assert max(sizes[-tenth:]) < 1.2 * max(sizes[:tenth])
    assert len(change.rejected) <= 16


def test_a_snapshot_is_not_changed_by_what_follows():
    model = trees()
    change = ChangeExplainer(model, window=K, threshold=0.1, detector_params=ADWIN, seed=4)
    stream = classes()
    for x, y in stream[:300]:
        step(change, model, 0, x, y)
    snapshot = change.snapshot()
    before = pickle.dumps(snapshot)
    for x, y in stream[300:]:
        step(change, model, 0, x, y)
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

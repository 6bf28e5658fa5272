"""The paper's procedure, Change Algorithm 1, step by step, with a detector that follows a script."""

import contextlib
import math
import threading

import numpy as np
import pytest
from river import linear_model

import attributary_explainers.change.alarms as alarms_module
import attributary_explainers.change.reference as reference_module
from attributary_explainers import ChangeExplainer, InvalidParameterError, ModelError, RejectedAlarm
from tests.explainers.oracles import smoothing_weights
from tests.explainers.stand_ins import Counting, Recording, ScriptedDetector

K = 10
PAPER = {"watch_discrepancy": False, "max_restarts": 0}


class SwitchingFeature:
    """Predicts feature a, and feature b from the observation on that `switch_at` have been learnt."""

    def __init__(self, switch_at):
        self.switch_at, self.n_learnt = switch_at, 0

    def __call__(self, x):
        return x["b" if self.n_learnt >= self.switch_at else "a"]

    def learn_one(self, x, y):
        self.n_learnt += 1


@pytest.fixture
def scripted(monkeypatch):
    """Explainers whose detector raises its alarms at the given numbers of values fed."""
    pfi_contributions = reference_module.pfi_contributions

    def make(model, *alarms, **parameters):
        detector = ScriptedDetector(alarms)
        monkeypatch.setattr(alarms_module, "make_detector", lambda name, params, *, seed: detector)
        batches = []

        def recording_pfi(tables, *args):
            batches.append([(dict(x), y) for x, y in zip(tables[0].xs, tables[0].ys, strict=True)])
            # All models are given the same data.
            assert all([*zip(table.xs, table.ys, strict=True)] == batches[-1] for table in tables)
            return pfi_contributions(tables, *args)

        monkeypatch.setattr(reference_module, "pfi_contributions", recording_pfi)
        parameters = {"window": K, "loss": "zero_one", "distance": "label", "seed": 1, **PAPER, **parameters}
        return ChangeExplainer(model, **parameters), detector, batches

    return make


def observations(n, seed=1):
    """Binary features a and b; the label is a."""
    rng = np.random.default_rng(seed)
    return [({"a": int(a), "b": int(b)}, int(a)) for a, b in rng.integers(2, size=(n, 2))]


def run(change, model, stream):
    """The explanations, by number of the observation from 1."""
    found = {}
    for number, (x, y) in enumerate(stream, start=1):
        y_pred = model(x)
        model.learn_one(x, y)
        if (explanation := change.update(x, y, y_pred)) is not None:
            found[number] = explanation
    return found


def test_the_detector_is_not_fed_until_the_reference_is_taken(scripted):
    model = SwitchingFeature(10**6)
    change, detector, batches = scripted(model)
    stream = observations(K + 7)
    assert change.is_collecting
    assert run(change, model, stream[: K - 1]) == {}
    assert (change.reference_observation, change.reference, change.is_collecting) == (None, None, True)
    assert run(change, model, stream[K - 1 : K]) == {}
    assert (change.reference_observation, change.is_collecting) == (K, False)
    assert change.reference["pfi"].n_observations == K
    assert detector.fed == []
    run(change, model, stream[K:])
    assert detector.fed == [0.0] * 7
    assert batches == [stream[:K]]


def test_the_signal_is_the_zero_one_error_of_the_prediction_made_before_learning(scripted):
    model = SwitchingFeature(K + 3)
    change, detector, _ = scripted(model, signal="zero_one")
    stream = observations(40)
    run(change, model, stream)
    expected = [float(x["a" if number < K + 3 else "b"] != y) for number, (x, y) in enumerate(stream)]
    assert detector.fed == expected[K:]
    assert 0.0 < sum(detector.fed) < len(detector.fed)


def test_the_signal_loss_is_the_loss(scripted):
    model = Counting()
    change, detector, _ = scripted(model, loss="squared", distance="number", signal="loss")
    run(change, model, [({"a": i}, 2.0) for i in range(K + 4)])
    assert detector.fed == [(2.0 - n) ** 2 for n in range(K, K + 4)]


def test_the_reference_is_the_model_as_it_was_after_k_observations(scripted):
    # Counting predicts how many observations it has learnt: the reference, frozen, predicts K for ever.
    model = Counting()
    change, _, _ = scripted(model, loss="squared", distance="number")
    run(change, model, [({"a": 0.0}, 0.0)] * K)
    assert (change.discrepancy, change.n_discrepancy) == (None, 0)
    for n in range(1, 30):
        run(change, model, [({"a": 0.0}, 0.0)])
        distances = np.arange(n, dtype=float)  # |K - K|, |K + 1 - K|, ...
        assert change.n_discrepancy == n
        assert change.discrepancy == pytest.approx(
            float(smoothing_weights(2 / (K + 1), n) @ distances), rel=1e-12, abs=1e-12
        )


def test_the_collected_data_has_k_observations_and_begins_with_the_detecting_one(scripted):
    model = SwitchingFeature(K + 2)
    change, detector, batches = scripted(model, 5, threshold=0.0)
    stream = observations(60)
    found = run(change, model, stream)
    detected = K + 5  # the fifth value fed
    assert list(found) == [detected + K - 1]
    explanation = found[detected + K - 1]
    assert (explanation.n_detected, explanation.n_observations) == (detected, detected + K - 1)
    assert batches == [stream[:K], stream[detected - 1 : detected + K - 1]]
    assert len(detector.fed) == len(stream) - K  # it keeps being fed while observations are collected


def test_the_discrepancy_is_the_mean_over_both_data_sets(scripted):
    model = SwitchingFeature(K + 2)
    change, _, _ = scripted(model, 5, threshold=0.0)
    stream = observations(60, seed=3)
    ((_, explanation),) = run(change, model, stream).items()
    both = [x for x, _ in (*stream[:K], *stream[K + 4 : 2 * K + 4])]
    assert explanation.n_discrepancy == len(both) == 2 * K
    assert explanation.discrepancy == sum(x["a"] != x["b"] for x in both) / (2 * K)


def test_alarms_while_collecting_are_ignored(scripted):
    model = SwitchingFeature(K + 2)
    alone, _, _ = scripted(model, 5, threshold=0.0)
    first = run(alone, model, observations(40))
    model = SwitchingFeature(K + 2)
    noisy, detector, _ = scripted(model, *range(5, 5 + K), threshold=0.0)
    second = run(noisy, model, observations(40))
    assert first == second
    assert alone.n_alarms == noisy.n_alarms == {"detector": 1, "discrepancy": 0}
    assert len(detector.alarms) == K


def test_an_alarm_with_the_observation_after_the_last_collected_counts_again(scripted):
    model = SwitchingFeature(10**6)
    change, _, batches = scripted(model, 5, 5 + K, threshold=0.0)
    run(change, model, observations(60))
    # The same model: nothing above 0, so both are rejected, on separate data.
    assert (change.n_alarms.total(), change.n_rejected, change.n_explained) == (2, 2, 0)
    assert len(batches) == 1


def test_at_or_below_the_threshold_nothing_is_said_and_the_reference_stays(scripted):
    stream = observations(60, seed=4)
    both = [x for x, _ in (*stream[:K], *stream[K + 4 : 2 * K + 4])]
    threshold = sum(x["a"] != x["b"] for x in both) / (2 * K)
    assert 0.0 < threshold < 1.0
    model = SwitchingFeature(K + 2)
    change, _, _ = scripted(model, 5, threshold=threshold)
    run(change, model, stream[:K])
    reference = change.reference
    assert run(change, model, stream[K:]) == {}  # not above: exactly at it
    assert change.rejected == [RejectedAlarm(2 * K + 4, K + 5, "detector", threshold, threshold)]
    assert (change.n_alarms.total(), change.n_rejected, change.n_explained) == (1, 1, 0)
    assert change.reference == reference
    assert change.reference_observation == K
    assert change.n_discrepancy == len(stream) - K
    assert not change.is_collecting


def test_above_the_threshold_the_current_model_becomes_the_reference(scripted):
    model = SwitchingFeature(K + 2)
    change, _, _ = scripted(model, 5, 40, threshold=0.05)
    stream = observations(120, seed=5)
    found = run(change, model, stream)
    ((number, explanation),) = found.items()  # the second alarm finds the model that is the reference now
    assert number == 2 * K + 4
    assert (change.n_alarms.total(), change.n_rejected, change.n_explained) == (2, 1, 1)
    assert change.reference_observation == number
    assert explanation.reference_observation == K
    assert change.reference["pfi"].importance == explanation.after
    assert change.n_discrepancy == len(stream) - number
    assert change.discrepancy == 0.0
    # Before, the model is a and right, and b is ignored; after, a is ignored.
    assert explanation.before["a"] > 0.0 == explanation.before["b"] == explanation.after["a"]
    assert explanation.delta["a"] < 0.0


def test_observations_without_a_prediction_feed_neither_detector_nor_discrepancy(scripted):
    model = SwitchingFeature(10**6)
    change, detector, _ = scripted(model)
    run(change, model, observations(K + 2))
    for y_pred in (None, {}):
        change.update({"a": 1, "b": 0}, 1, y_pred)
    assert len(detector.fed) == change.n_discrepancy == 2
    assert change.n_observations == K + 4


def test_a_model_that_cannot_predict_yet_does_not_end_the_explainer(scripted):
    # Whether the first window raises or is put off: once the model predicts, a reference has to come of it.
    model = Recording(prediction=None)
    change, _, _ = scripted(model, loss="squared", distance="number")
    for x, y in observations(2 * K + 3):
        with contextlib.suppress(ModelError):
            change.update(x, y, None)
    model.prediction = 1.0
    for x, y in observations(2 * K):
        change.update(x, y, 1.0)
    assert change.reference is not None


@pytest.mark.parametrize("parameters", [{"signal": "zero_one"}, {"distance": "label"}, {"distance": "probability"}])
def test_a_setting_that_a_regressor_cannot_serve_is_refused_at_construction(parameters):
    with pytest.raises(ModelError):
        ChangeExplainer(linear_model.LinearRegression(), **parameters)


class HoldingALock:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, x):
        return 0.0


def test_a_model_that_cannot_be_copied_is_refused_at_construction():
    with pytest.raises(ModelError, match="cannot save"):
        ChangeExplainer(HoldingALock(), loss="squared")


def test_a_lambda_is_its_own_copy_until_it_has_to_be_saved():
    change = ChangeExplainer(lambda x: x["a"], loss="squared", window=2)
    for i in range(3):
        change.update({"a": float(i)}, 1.0, float(i))
    assert change.reference is not None
    with pytest.raises(ModelError, match="cannot save"):
        change.snapshot()


def test_one_infinite_loss_in_the_first_window_does_not_end_the_explainer(scripted):
    # Put off or raised, as the explainer likes; but the next windows are sound, and a reference has to come of them.
    model = Recording(prediction=0.0)
    change, _, _ = scripted(model, loss="squared", distance="number")
    for number in range(4 * K):
        with contextlib.suppress(ModelError, InvalidParameterError):
            change.update({"a": float(number)}, math.inf if number == 3 else 1.0, 0.0)
    assert change.reference is not None

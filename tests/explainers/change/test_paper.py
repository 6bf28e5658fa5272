"""Algorithm 1 on STAGGER A.1 to A.2: exact with the true concepts, within the paper's table with a forest."""

import math

import pytest
from river.datasets import synth
from river.forest import ARFClassifier

from attributary_explainers import InvalidParameterError, PaperChangeExplainer
from tests.explainers.oracles import FEATURES, exact_pfi, medium_or_large, small_and_red, stagger_stream
from tests.explainers.stand_ins import SwitchingConcept

K = 300
GROUPS = {f: [f"{f}_{value}" for value in range(3)] for f in FEATURES}
SETTING = {"window": K, "threshold": 0.3, "detector_params": {"delta": 0.025}}


class Late:
    """Predicts nothing until it has learnt thirty observations."""

    n_learnt = 0

    def __call__(self, x):
        return 1 if self.n_learnt >= 30 else None

    def learn_one(self, x, y):
        self.n_learnt += 1


def found_in(change, model, stream):
    found = []
    for x, y in stream:
        y_pred = model(x) if callable(model) else model.predict_one(x)
        model.learn_one(x, y)
        if (explanation := change.update(x, y, y_pred)) is not None:
            found.append(explanation)
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_true_concepts_give_the_exact_discrepancy_and_importances(seed):
    # The data switches at 600, the model follows at 700: in between it is wrong on 7 of 9, which the detector sees.
    model = SwitchingConcept(700)
    change = PaperChangeExplainer(model, loss="zero_one", distance="label", signal="zero_one", seed=seed, **SETTING)
    stream = [*stagger_stream(small_and_red, 600, seed), *stagger_stream(medium_or_large, 900, seed + 100)]
    (explanation,) = found_in(change, model, stream)
    assert 600 < explanation.n_detected < 700
    assert explanation.n_observations == explanation.n_detected + K - 1
    assert (explanation.reference_observation, explanation.scale, explanation.verdict) == (K, "absolute", None)
    share = 7 / 9
    error = math.sqrt(share * (1 - share) / (2 * K))  # of a mean of 600 labels that differ or not
    assert abs(explanation.discrepancy - share) < 4 * error
    for concept, importance, errors in (
        (small_and_red, explanation.before, explanation.before_std_error),
        (medium_or_large, explanation.after, explanation.after_std_error),
    ):
        for feature, exact in exact_pfi(concept).items():
            if exact == 0:
                assert importance[feature] == errors[feature] == 0.0
            else:
                # Four of its own standard errors, which lack some 10 % for what a permutation shares.
                assert abs(importance[feature] - float(exact)) < 4 * 1.1 * errors[feature]
                assert errors[feature] < 0.05
    assert explanation.significant() == ["size", "color"]
    assert explanation.delta["size"] > 0 > explanation.delta["color"]
    for name, error in explanation.delta_std_error.items():
        assert error == math.hypot(explanation.before_std_error[name], explanation.after_std_error[name])
    assert (change.n_alarms - change.n_rejected, change.reference_observation) == (1, explanation.n_observations)
    assert explanation.sentence("m").startswith(f"m changed at {explanation.n_observations:,} (".replace(",", " "))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_a_forest_on_the_papers_stream_lies_within_its_table(seed):
    # Change Table 1: 2000 one-hot observations, drift at 1250 over 50, K 300, delta .025, tau .3; bands as in
    # benchmarks/papers.
    drifting = synth.ConceptDriftStream(
        synth.STAGGER(classification_function=0, seed=seed),
        synth.STAGGER(classification_function=2, seed=seed + 50),
        seed=seed,
        position=1250,
        width=50,
    )
    stream = [
        ({f"{f}_{value}": int(x[f] == value) for f in FEATURES for value in range(3)}, y)
        for x, y in drifting.take(2000)
    ]
    model = ARFClassifier(n_models=10, seed=seed)
    change = PaperChangeExplainer(model, groups=GROUPS, seed=seed, **SETTING)
    (explanation,) = found_in(change, model, stream)
    assert (explanation.signal, explanation.distance, explanation.loss) == ("zero_one", "label", "zero_one")
    assert explanation.n_detected > 1250
    assert set(explanation.before) == set(explanation.after) == set(FEATURES)
    assert 0.723 < explanation.discrepancy < 0.831
    assert 0.087 < explanation.before["size"] < 0.213
    assert 0.33 < explanation.after["size"] < 0.54
    assert abs(explanation.after["color"]) < 0.01
    assert abs(explanation.after["shape"]) < 0.01


def test_an_alarm_within_the_threshold_is_rejected_and_the_reference_stays():
    model = SwitchingConcept(10**6)  # never follows
    change = PaperChangeExplainer(model, loss="zero_one", distance="label", signal="zero_one", seed=1, **SETTING)
    stream = [*stagger_stream(small_and_red, 600, 1), *stagger_stream(medium_or_large, 900, 2)]
    assert found_in(change, model, stream) == []
    assert change.n_alarms >= change.n_rejected >= 1
    assert change.reference_observation == K


def test_a_stream_without_drift_is_not_explained():
    model = SwitchingConcept(10**6)
    change = PaperChangeExplainer(model, window=50, loss="zero_one", distance="label", signal="zero_one", seed=1)
    assert found_in(change, model, stagger_stream(small_and_red, 1500, 1)) == []
    assert change.n_alarms == 0


def test_a_model_without_a_prediction_is_taken_as_the_reference_later():
    model = Late()
    change = PaperChangeExplainer(model, window=20, loss="zero_one", distance="label", seed=1)
    found_in(change, model, stagger_stream(small_and_red, 60, 1))
    assert change.reference_observation == 30


@pytest.mark.parametrize(
    ("parameter", "value"), [("window", 1), ("threshold", -0.1), ("distance", "x"), ("signal", "x")]
)
def test_what_cannot_be_is_refused(parameter, value):
    with pytest.raises(InvalidParameterError):
        PaperChangeExplainer(ARFClassifier(), **{parameter: value})

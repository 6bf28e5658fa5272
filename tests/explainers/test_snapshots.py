"""Snapshot, pickle, restore, continue: the same as never having stopped, bit for bit."""

import copy
import pickle

import numpy as np
import pytest
from river import anomaly, compose, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from attributary_explainers import (
    LOSS_NAMES,
    RESERVOIR_NAMES,
    IncrementalPFI,
    IncrementalSAGE,
    SnapshotError,
    as_loss,
    make_reservoir,
)
from tests.explainers.plain_data import strangers

EXPLAINERS = [IncrementalPFI, IncrementalSAGE]
STOP, N = 60, 130


def model_for(loss):
    if loss in ("zero_one", "cross_entropy", "brier"):
        return naive_bayes.GaussianNB()
    if loss == "score":
        return anomaly.HalfSpaceTrees(n_trees=3, height=3, window_size=20, seed=1)
    return compose.Pipeline(preprocessing.StandardScaler(), linear_model.LinearRegression())


def stream_for(loss):
    if loss in ("absolute", "squared", "score"):
        return list(synth.Friedman(seed=2).take(N))
    # Probabilities of mixed labels, as River allows.
    return [(x, ("no", 1)[y]) for x, y in synth.Agrawal(classification_function=1, seed=2).take(N)]


def learn(model, x, y):
    if isinstance(model, anomaly.HalfSpaceTrees):
        model.learn_one(x)
    else:
        model.learn_one(x, y)


def go_on(explainer, model, stream):
    """Every published quantity after every observation."""
    trace = []
    for x, y in stream:
        explainer.explain_one(x, y)
        learn(model, x, y)
        extra = [getattr(explainer, name, None) for name in ("marginal_loss", "model_loss")]
        counts = (explainer.n_observations, explainer.n_skipped)
        # repr tells every bit of a float, and NaN from NaN equal.
        trace.append(repr((explainer.importance, explainer.raw_importance, explainer.std_error, extra, counts)))
    return trace


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("reservoir", RESERVOIR_NAMES)
@pytest.mark.parametrize("loss", LOSS_NAMES)
@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_restoring_and_continuing_equals_never_having_stopped(explainer, loss, reservoir, grouped):
    stream, model = stream_for(loss), model_for(loss)
    names = list(stream[0][0])
    original = explainer(
        model,
        loss=loss,
        alpha=0.03,
        n_samples=2,
        reservoir=make_reservoir(reservoir, 20),
        groups={"pair": [names[0], names[2]]} if grouped else None,
        seed=5,
    )
    go_on(original, model, stream[:STOP])
    snapshot = original.snapshot()
    assert strangers(snapshot) == []
    stored, model_then = pickle.dumps(snapshot), copy.deepcopy(model)
    expected = go_on(original, model, stream[STOP:])
    assert pickle.dumps(snapshot) == stored, "the snapshot has changed while the explainer went on"
    restored = explainer.from_snapshot(pickle.loads(stored), model_then)
    assert restored.parameters == original.parameters
    assert go_on(restored, model_then, stream[STOP:]) == expected
    assert original.n_observations >= N - 3


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_a_snapshot_before_any_observation_can_be_continued(explainer):
    stream, model = stream_for("brier"), model_for("brier")
    original = explainer(model, loss="brier", seed=6)
    snapshot = pickle.loads(pickle.dumps(original.snapshot()))
    assert strangers(snapshot) == []
    model_then = copy.deepcopy(model)
    expected = go_on(original, model, stream[:40])
    assert go_on(explainer.from_snapshot(snapshot, model_then), model_then, stream[:40]) == expected


@pytest.mark.parametrize("explainer", EXPLAINERS)
@pytest.mark.parametrize("model", [linear_model.LogisticRegression(), linear_model.SoftmaxRegression()])
def test_the_snapshot_is_plain_whatever_numbers_the_model_predicts(explainer, model):
    explaining = explainer(model, loss="cross_entropy", seed=7)
    go_on(explaining, model, [(x, y) for x, y in synth.SEA(seed=1).take(20)])
    assert strangers(explaining.snapshot()) == []


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_the_snapshot_is_plain_where_model_and_loss_calculate_in_numpy(explainer):
    explaining = explainer(lambda x: np.float64(x["a"]), loss=lambda y, p: np.float64(abs(y - p)), seed=8)
    for i in range(10):
        explaining.explain_one({"a": float(i), "b": 1.0}, 1.0)
    assert strangers(explaining.snapshot()) == []


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_equal_seeds_repeat_and_other_seeds_differ(explainer):
    traces = []
    for seed in (1, 1, 2):
        model = model_for("brier")
        explaining = explainer(model, loss="brier", alpha=0.03, n_samples=2, seed=seed)
        traces.append(go_on(explaining, model, stream_for("brier")))
    assert traces[0] == traces[1] != traces[2]


def test_a_snapshot_of_another_class_or_format_is_refused_with_advice():
    snapshot = IncrementalPFI(lambda x: 0.0, loss="squared").snapshot()
    with pytest.raises(SnapshotError, match=r"expected a snapshot of 'sage' .*got 'pfi'.*start a new explainer"):
        IncrementalSAGE.from_snapshot(snapshot, lambda x: 0.0)
    for bad in ({**snapshot, "format": 999}, {**snapshot, "format": "1"}, {}, {"explainer": "pfi"}):
        with pytest.raises(SnapshotError, match="restore it with the release that wrote it"):
            IncrementalPFI.from_snapshot(bad, lambda x: 0.0)


def test_another_loss_is_refused_with_advice():
    def own(y, prediction):
        return abs(y - prediction)

    def other(y, prediction):
        return 0.0

    snapshot = IncrementalPFI(lambda x: 0.0, loss=own).snapshot()
    assert IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0, loss=own).loss.name == "own"
    with pytest.raises(SnapshotError, match=r"with the loss 'own', not 'other': pass that loss"):
        IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0, loss=other)


def test_a_loss_of_the_users_own_that_is_not_passed_is_asked_for():
    def own(y, prediction):
        return abs(y - prediction)

    snapshot = IncrementalPFI(lambda x: 0.0, loss=own).snapshot()
    with pytest.raises(SnapshotError, match="own"):
        IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0)


def test_a_named_loss_with_another_epsilon_is_not_taken_for_the_default():
    # Epsilon decides what one sure mistake weighs: 4.6 or 34.5. Either it is kept, or the loss is asked for.
    model = model_for("cross_entropy")
    original = IncrementalPFI(model, loss=as_loss("cross_entropy", epsilon=0.01), seed=9)
    sure = {"a": 1.0, "b": 0.0}
    try:
        restored = IncrementalPFI.from_snapshot(original.snapshot(), model)
    except SnapshotError:
        return
    assert restored.loss("b", sure) == original.loss("b", sure)


def test_a_reservoir_that_this_release_does_not_know_is_refused():
    snapshot = IncrementalPFI(lambda x: 0.0, loss="squared").snapshot()
    snapshot["reservoir"]["name"] = "sliding"
    with pytest.raises(SnapshotError, match="sliding"):
        IncrementalPFI.from_snapshot(snapshot, lambda x: 0.0)

"""Events become the history that the library's own objects give."""

import json
import math

import numpy as np
import pytest
from river import forest
from river.datasets import synth

from attributary_agents.replay.history import history_from_events
from attributary_explainers import (
    ChangeExplainer,
    ChangeExplanation,
    ImportanceHistory,
    IncrementalPFI,
    InvalidParameterError,
)


def same(found, expected):
    np.testing.assert_array_equal(found, expected)  # NaN equals NaN


def event(observation, model_id="credit", explainer="pfi", **features):
    values = {"importance": 0.25, "std_error": None, "half_width": None, "share": 1.0, "rank": 1}
    return {
        "model_id": model_id,
        "explainer": explainer,
        "loss": "cross_entropy",
        "loss_unit": "nats",
        "loss_largest": 34.538776394910684,
        "observation": observation,
        "features": {name: {**values, **value} for name, value in features.items()},
    }


def change_event(observation, model_id="credit"):
    feature = {"before": 0.1, "after": 0.3, "significant": True}
    features = {
        "age": {**feature, "delta": -0.1},
        "salary": {**feature, "delta": 0.4},
        "car": {**feature, "delta": 9.0},
    }
    features["car"]["significant"] = False
    return {
        "event": "explanation",
        "model_id": model_id,
        "observation": observation,
        "detected_at": observation - 50,
        "importances": {"pfi": {"features": features}},
    }


def test_events_of_a_replay_become_a_history():
    importances = [
        event(100, age={"importance": 0.5, "half_width": 0.01}),
        event(200, age={"importance": 0.125}, salary={"importance": -0.5, "half_width": 0.02}),
    ]
    lines = [json.dumps(line) for line in (*importances, change_event(180))]
    *importances, change = map(json.loads, lines)
    history = history_from_events(importances, [change])
    same(history.positions, [100, 200])
    same(history.series("age")[1:], [[0.5, 0.125], [0.01, math.nan]])
    same(history.series("salary")[1:], [[math.nan, -0.5], [math.nan, 0.02]])
    assert (history.explainer, history.unit) == ("pfi", "cross_entropy loss: nats, at most 34.5")
    assert [(m.since, m.position, m.label) for m in history.changes] == [(130, 180, "salary ↑ age ↓")]
    assert len(history_from_events(iter([]))) == 0


def test_features_that_have_to_do_with_a_shift_of_the_loss_are_marked():
    shift = {"event": "loss_shift", "model_id": "credit", "observation": 150}
    features = {"age": {"delta": -0.1, "significant": True}, "car": {"delta": None, "significant": False}}
    explained = {**shift, "event": "loss_shift_explained", "observation": 900, "detected_at": 150, "features": features}
    history = history_from_events([event(100, age={})], [shift, explained, {**shift, "event": "loss_shift_released"}])
    assert [(m.since, m.position, m.label) for m in history.changes] == [(150, 900, "age ↓")]


def test_events_of_several_models_are_told_apart():
    value = {"age": {}}
    importances = [event(1, "a", "pfi", **value), event(1, "a", "sage", **value), event(1, "b", "pfi", **value)]
    changes = [change_event(60, "a"), change_event(70, "b")]
    for wrong in ({}, {"model_id": "a"}, {"explainer": "pfi"}):
        with pytest.raises(InvalidParameterError, match=r"must be named, because there are events of '(a|pfi)' and"):
            history_from_events(importances, changes, **wrong)
    history = history_from_events(importances, changes, model_id="b", explainer="pfi")
    assert len(history) == 1
    assert [mark.position for mark in history.changes] == [70]


def test_what_a_worker_publishes_is_the_same_history():
    """The library's own objects and the events made of them tell the same."""
    model = forest.ARFClassifier(n_models=3, seed=1)
    pfi = IncrementalPFI(model, loss="zero_one", alpha=0.02, n_samples=2, seed=1)
    change = ChangeExplainer(model, window=150, threshold=0.2, seed=1)
    history, importances, changes = ImportanceHistory(), [], []
    first, second = (synth.STAGGER(classification_function=c, seed=c).take(1000) for c in (0, 2))
    for n, (x, y) in enumerate((*first, *second), start=1):
        y_pred = model.predict_proba_one(x)
        importance = pfi.explain_one(x, y)
        model.learn_one(x, y)
        for told in change.update(x, y, y_pred):
            changes.append({"event": "alarm", "model_id": "m", "observation": n})
            if isinstance(told, ChangeExplanation):
                history.mark_change(told)
                named, delta = told.significant(), told.delta
                features = {f: {"delta": delta[f], "significant": f in named} for f in told.features}
                changes[-1] |= {"event": "explanation", "detected_at": told.n_detected}
                changes[-1]["importances"] = {"pfi": {"features": features}}
        if n % 50 == 0:
            history.record(pfi)
            found = {f: {"importance": importance[f], "half_width": pfi.half_width[f]} for f in importance}
            importances.append({**event(n, "m"), "loss": "zero_one", "features": found})
    found = history_from_events(importances, changes)
    assert len(found.changes) == 1
    assert found.changes == history.changes
    for name in ("size", "color", "shape"):
        same(found.series(name), history.series(name))


def test_events_with_another_loss_are_refused():
    with pytest.raises(InvalidParameterError, match=r"the name and loss recorded before, .*cross_entropy.*zero_one"):
        history_from_events([event(1, age={}), {**event(2, age={}), "loss": "zero_one"}])


@pytest.mark.parametrize("max_records", [1, 2.5, True])
def test_parameters_out_of_range_are_refused(max_records):
    with pytest.raises(InvalidParameterError, match=r"^max_records must be"):
        history_from_events([], max_records=max_records)

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


def revision(observation, life="confirmed", model_id="credit", number=1, **features):
    named = {name: {"delta": delta, "significant": True} for name, delta in features.items()}
    return {
        "event": "incident",
        "id": f"{model_id}:{number}",
        "what": "worse",
        "life": life,
        "model_id": model_id,
        "observation": observation,
        "since": {"observation": observation - 50},
        "features": {
            **named,
            "car": {"delta": 9.0, "significant": False},
            "zip": {"delta": None, "significant": False},
        },
    }


def test_events_of_a_replay_become_a_history():
    importances = [
        event(100, age={"importance": 0.5, "half_width": 0.01}),
        event(200, age={"importance": 0.125}, salary={"importance": -0.5, "half_width": 0.02}),
    ]
    lines = [json.dumps(line) for line in (*importances, revision(180, age=-0.1, salary=0.4))]
    *importances, incident = map(json.loads, lines)
    history = history_from_events(importances, [incident])
    same(history.positions, [100, 200])
    same(history.series("age")[1:], [[0.5, 0.125], [0.01, math.nan]])
    same(history.series("salary")[1:], [[math.nan, -0.5], [math.nan, 0.02]])
    assert (history.explainer, history.unit) == ("pfi", "cross_entropy loss: nats, at most 34.5")
    assert [(m.since, m.position, m.label) for m in history.changes] == [(130, 180, "salary ↑ age ↓")]
    assert len(history_from_events(iter([]))) == 0


def test_each_incident_that_was_confirmed_is_marked_once_as_it_was_told_last():
    told = [
        revision(150, "suspected"),
        revision(200),
        {**revision(900, "over", age=-0.1), "since": {"observation": 120}},
        revision(950, "suspected", number=2),
        revision(960, "withdrawn", number=2),
        revision(1000, number=3),
    ]
    history = history_from_events([event(100, age={})], told)
    assert [(m.since, m.position, m.label) for m in history.changes] == [(120, 200, "age ↓"), (950, 1000, "worse")]


def test_events_of_several_models_are_told_apart():
    value = {"age": {}}
    importances = [event(1, "a", "pfi", **value), event(1, "a", "sage", **value), event(1, "b", "pfi", **value)]
    incidents = [revision(60, model_id="a"), revision(70, model_id="b")]
    for wrong in ({}, {"model_id": "a"}, {"explainer": "pfi"}):
        with pytest.raises(InvalidParameterError, match=r"must be named, because there are events of '(a|pfi)' and"):
            history_from_events(importances, incidents, **wrong)
    history = history_from_events(importances, incidents, model_id="b", explainer="pfi")
    assert len(history) == 1
    assert [mark.position for mark in history.changes] == [70]


def test_what_a_worker_publishes_is_the_same_history():
    """The library's own objects and the events made of them tell the same."""
    model = forest.ARFClassifier(n_models=3, seed=1)
    pfi = IncrementalPFI(model, loss="zero_one", alpha=0.02, n_samples=2, seed=1)
    change = ChangeExplainer(model, window=150, threshold=0.2, seed=1)
    history, importances, incidents = ImportanceHistory(), [], []
    first, second = (synth.STAGGER(classification_function=c, seed=c).take(1000) for c in (0, 2))
    for n, (x, y) in enumerate((*first, *second), start=1):
        y_pred = model.predict_proba_one(x)
        importance = pfi.explain_one(x, y)
        model.learn_one(x, y)
        for told in change.update(x, y, y_pred):
            if isinstance(told, ChangeExplanation):
                history.mark_change(told)
                named = {f: told.delta[f] for f in told.significant()}
                incidents.append({**revision(n, model_id="m", **named), "since": {"observation": told.n_detected}})
        if n % 50 == 0:
            history.record(pfi)
            found = {f: {"importance": importance[f], "half_width": pfi.half_width[f]} for f in importance}
            importances.append({**event(n, "m"), "loss": "zero_one", "features": found})
    found = history_from_events(importances, incidents)
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

"""Restored and continued equals never stopped, in every state, and a snapshot is plain data."""

import pickle

import pytest

from attributary_explainers import ChangeExplainer, SnapshotError
from attributary_explainers.change import state
from tests.explainers.plain_data import strangers
from tests.explainers.streams_of_change import Cells, bits

STATES = ("reference", "examined", "doubt", "matured", "deployed", "half", "before_course", "drift", "version", "check")
"""What a snapshot can hold besides: all of them are met below."""


def met(snapshot):
    """Which of the states this is."""
    held = snapshot["state"]
    found = {name for name in STATES[:-3] if name != "doubt" and held[f"_{name}"] is not None}
    if held["_examined"] and held["_examined"]["state"]["is_doubt"]:
        found.add("doubt")
    pending = [one["state"] for one in held["_pending"]]
    under_way = {one["told"]["state"]["route"] for one in pending if one["answers"]}
    return found | {route if route in STATES else "drift" for route in under_way}


def rule(x, t):
    return x["a"] ^ x["b"] if t < 1500 else x["c"] if t < 2600 else x["a"]


def damage(model):
    model.cells = {key: list(reversed(cell)) for key, cell in model.cells.items()}


def events_of(stops, batch_size=4):
    """The events of a stream with learning, drifts, a damaged model and another version; restored at `stops`."""
    model = Cells("abc", rate=0.01)
    parameters = {"distance": "probability", "threshold": 0.05, "importances": ("pfi", "sage"), "seed": 3}
    change = ChangeExplainer(model, window=100, batch_size=batch_size, **parameters)
    found, states = [], set()
    for t, (x, y) in enumerate(bits(5200, rule, seed=11, flips=0.05)):
        if t == 4300:
            damage(model)
            model.rate = 0.0
        if t == 4600:
            model = pickle.loads(pickle.dumps(model))
            model.rate = 0.05
            found += change.new_version(model, "2")
        y_pred = model.predict_proba_one(x)
        model.learn_one(x, y)
        found += change.update(x, y, y_pred)
        if t in stops:
            snapshot = change.snapshot()
            assert strangers(snapshot) == []
            states |= met(snapshot)
            stored = pickle.dumps(snapshot)
            model = pickle.loads(pickle.dumps(model))
            change = ChangeExplainer.from_snapshot(pickle.loads(stored), model)
            assert change.snapshot() == snapshot
    return found, change.snapshot(), states


def test_in_every_state(monkeypatch):
    monkeypatch.setattr(state, "SLICE", 1)  # explanations take as long as they may
    never, last, _ = events_of(())
    assert {type(event).__name__ for event in never} == {"Alarm", "ChangeExplanation", "NotConfirmed"}
    restored, last_restored, states = events_of((*range(0, 5200, 37), 4710))
    assert restored == never
    assert last_restored == last
    assert states == set(STATES)


def test_a_snapshot_is_not_changed_by_what_follows():
    model = Cells(rate=0.01)
    change = ChangeExplainer(model, window=50, seed=1)
    stream = list(bits(400, lambda x, t: x["a"], seed=1))
    for x, y in stream[:200]:
        change.update(x, y, model.predict_proba_one(x))
    snapshot = change.snapshot()
    before = repr(snapshot)
    for x, y in stream[200:]:
        change.update(x, y, model.predict_proba_one(x))
    assert repr(snapshot) == before


def test_a_snapshot_of_another_class_is_refused():
    model = Cells()
    snapshot = ChangeExplainer(model).snapshot()
    with pytest.raises(SnapshotError):
        ChangeExplainer.from_snapshot({**snapshot, "explainer": "pfi"}, model)
    with pytest.raises(SnapshotError, match=r"got bytes; of bytes, give pickle\.loads"):
        ChangeExplainer.from_snapshot(b"", model)


def test_every_parameter_is_in_the_snapshot():
    given = {
        "window": 77, "threshold": 0.11, "discrepancy": "absolute", "distance": "probability",
        "watch_discrepancy": False, "detector": "page_hinkley", "detector_params": {"threshold": 9.0},
        "one_sided": False, "signal": "loss", "margin": 0.3, "batch_size": 5, "importances": ["sage", "pfi"],
        "loss": "cross_entropy", "groups": {"g": ["a", "b"]}, "n_permutations": 2, "n_samples": 6,
    }  # fmt: skip
    model = Cells()
    change = ChangeExplainer(model, **given, version="7", seed=4)
    assert change.parameters == given
    restored = ChangeExplainer.from_snapshot(change.snapshot(), model)
    assert (restored.parameters, restored.version) == (given, "7")

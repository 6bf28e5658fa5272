"""Alarms of both routes, restarts, cooldown and batches: beside the procedure written out slowly, and case by case."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import ChangeExplainer, RejectedAlarm, as_batch
from tests.explainers.naive_change import (
    KINDS,
    PAPER,
    NaiveChange,
    Scheduled,
    found_in,
    learn,
    observations,
    said_by,
    scripted,
    state_of,
)

K = 10
CHANGES = st.lists(st.tuples(st.integers(0, 110), st.sampled_from(sorted(KINDS))), max_size=5)
SCRIPTS = st.lists(st.sets(st.integers(1, 60), max_size=8).map(sorted), max_size=3)


@st.composite
def cases(draw):
    window = draw(st.integers(2, 13))
    parameters = {
        "window": window,
        "threshold": draw(st.sampled_from([0.0, 0.07, 0.21, 0.37])),  # equal to no smoothed mean of 0 and 1 but 0
        "watch_discrepancy": draw(st.booleans()),
        "max_restarts": draw(st.integers(0, 2)),
        "min_observations": draw(st.one_of(st.none(), st.integers(window, window + 9))),
        "cooldown": draw(st.sampled_from([0, 0, 1, 7, 25])),
        "version": "one",
        "seed": draw(st.integers(0, 3)),
    }
    has_detector = draw(st.booleans()) if parameters["watch_discrepancy"] else True
    versions = draw(st.dictionaries(st.integers(1, 110), st.tuples(CHANGES, st.booleans()), max_size=2))
    return {
        "parameters": parameters,
        "has_detector": has_detector,
        "batch_size": draw(st.sampled_from([1, 1, 3, 7, 20])),
        "measured": draw(st.booleans()),
        "scripts": draw(SCRIPTS),
        "schedule": draw(CHANGES),
        "versions": versions,
        "silent": draw(st.sets(st.integers(1, 110), max_size=6)),
        "stream": draw(st.integers(0, 5)),
    }


def scheduled(changes):
    return Scheduled((0, "a"), *sorted(changes))


@given(cases())
@settings(max_examples=150, derandomize=True)
def test_after_every_observation_it_is_where_the_procedure_written_out_slowly_is(case):
    with pytest.MonkeyPatch.context() as patch:
        model = scheduled(case["schedule"])
        change = scripted(
            patch,
            model,
            *case["scripts"],
            **case["parameters"],
            detector="adwin" if case["has_detector"] else None,
            importances=("pfi",) if case["measured"] else (),
            batch_size=case["batch_size"],
        )
        naive = NaiveChange(
            model,
            scripts=case["scripts"],
            has_detector=case["has_detector"],
            measured=case["measured"],
            batch_size=case["batch_size"],
            **case["parameters"],
        )
        for number, (x, y) in enumerate(observations(120, seed=case["stream"]), start=1):
            y_pred = None if number in case["silent"] else model(x)
            model.learn_one(x, y)
            explanation = change.update(x, y, y_pred)
            assert said_by(explanation) == naive.update(x, y, y_pred)
            assert explanation is None or explanation.detector == ("adwin" if case["has_detector"] else None)
            assert state_of(change) == naive.state()
            assert (change.discrepancy is None) == (naive.discrepancy is None)
            assert change.discrepancy is None or math.isclose(change.discrepancy, naive.discrepancy, abs_tol=1e-12)
            if number in case["versions"]:
                changes, explain = case["versions"][number]
                model, name = scheduled(changes), f"since {number}"
                said = change.new_version(model, name, explain=explain)
                assert said_by(said) == naive.new_version(model, name, explain)
                assert state_of(change) == naive.state()
        if case["has_detector"]:
            assert change.detectors[-1].fed == naive.fed
            assert len(change.detectors) == naive.n_detectors
        assert change.n_observations == 120


@pytest.mark.parametrize("seed", [3, 4])
def test_at_the_threshold_the_alarm_is_rejected_and_the_reference_stays(monkeypatch, seed):
    stream = observations(60, seed)
    both = [x for x, _ in (*stream[:K], *stream[K + 4 : 2 * K + 4])]
    threshold = sum(x["a"] != x["b"] for x in both) / (2 * K)
    assert 0.0 < threshold < 1.0
    model = Scheduled((0, "a"), (K + 2, "b"))
    change = scripted(monkeypatch, model, [5], threshold=threshold, **PAPER)
    found_in(change, model, stream[:K])
    reference = change.reference
    assert found_in(change, model, stream[K:]) == {}  # not above: exactly at it
    assert change.rejected == [RejectedAlarm(2 * K + 4, K + 5, "detector", threshold, threshold)]
    assert (change.n_alarms.total(), change.n_rejected, change.n_explained) == (1, 1, 0)
    assert (change.reference, change.reference_observation) == (reference, K)
    assert change.n_discrepancy == len(stream) - K
    assert not change.is_collecting


class Slow:
    """Predicts one more of ten inputs otherwise after every 20 observations."""

    n_learnt = 0

    def __call__(self, x):
        return x["a"] if x["i"] >= self.n_learnt // 20 else 1 - x["a"]

    def learn_one(self, x, y):
        self.n_learnt += 1


@pytest.mark.parametrize(("parameters", "routes"), [({}, {"discrepancy"}), (PAPER, set())])
def test_a_slow_drift_that_no_detector_sees_is_explained_but_not_by_the_papers_procedure(
    monkeypatch, parameters, routes
):
    stream = [({"a": i % 2, "b": 0, "i": i % 10}, i % 2) for i in range(400)]
    model = Slow()
    change = scripted(monkeypatch, model, threshold=0.3, window=20, **parameters)  # a detector that never alarms
    assert {e.route for e in found_in(change, model, stream).values()} == routes
    assert (change.n_alarms["detector"], change.n_alarms["discrepancy"] > 0) == (0, bool(routes))


A, NOT_A = "a", "not a"


@pytest.mark.parametrize(
    ("schedule", "alarms", "max_restarts", "expected"),
    [
        # Distance 1 from K + 2 on: the discrepancy is above the threshold at every observation of the collection.
        ([(0, A), (K + 1, NOT_A)], [2], 5, ("detector", K + 2, 0, {"detector": 1, "discrepancy": 0})),
        # The model has changed when the detector alarms, at K + 7: the discrepancy's alarm, at K + 5, stands.
        ([(0, A), (K + 1, NOT_A)], [7, 9], 1, ("discrepancy", K + 5, 0, {"detector": 0, "discrepancy": 1})),
        # It is as it was at K + 7, and changes afterwards: what was collected before says nothing.
        (
            [(0, A), (K + 1, NOT_A), (K + 6, A), (K + 8, NOT_A)],
            [7],
            1,
            ("detector", K + 7, 1, {"detector": 0, "discrepancy": 1}),
        ),
    ],
)
def test_only_the_detector_starts_a_collection_again(monkeypatch, schedule, alarms, max_restarts, expected):
    model = Scheduled(*schedule)
    change = scripted(monkeypatch, model, alarms, threshold=0.3, max_restarts=max_restarts)
    ((number, explanation),) = found_in(change, model, observations(30)).items()
    assert (explanation.route, explanation.n_detected, change.n_restarts, change.n_alarms) == expected
    assert number == explanation.n_detected + K - 1


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (PAPER, []),  # blind: the second alarm is ignored, and no third one comes
        ({"max_restarts": 0}, ["discrepancy"]),
        ({"watch_discrepancy": False, "max_restarts": 1}, ["detector"]),
        ({}, ["detector"]),
    ],
)
def test_a_change_while_a_false_alarm_is_looked_into_is_explained_in_the_end(monkeypatch, parameters, expected):
    # A false alarm with observation K + 5, looked into until K + 14. The concept changes in between, of which the
    # detector tells at K + 12; the model has learnt it by K + 16, too late for the false alarm's verdict.
    model = Scheduled((0, "a"), (K + 16, "not a"))
    change = scripted(monkeypatch, model, [5, 12], threshold=0.3, **parameters)
    found = found_in(change, model, observations(120))
    assert [e.route for e in found.values()] == expected
    # All of the models' predictions differ, on all rows.
    assert {e.discrepancy for e in found.values()} <= {1.0}
    assert change.n_rejected == (0 if parameters.get("max_restarts", 1) else 1)


def flips(rows):
    """Predicts a, whatever has been learnt; many rows at once."""
    CALLS.append(len(rows))
    return [row["a"] for row in rows]


CALLS = []


@pytest.mark.parametrize(
    ("parameters", "size"), [({}, 32), ({"window": 20}, 20), ({"batch_size": 5}, 5), ({"batch_size": 1}, 1)]
)
def test_a_model_of_many_rows_is_asked_in_batches(parameters, size):
    window = parameters.get("window", 50)
    change = ChangeExplainer(
        as_batch(flips), **{"window": 50, "loss": "zero_one", "distance": "label", "seed": 1, **parameters}
    )
    stream = observations(window + 100)
    for x, y in stream[:window]:
        change.update(x, y, x["a"])
    CALLS.clear()
    for x, y in stream[window:]:
        change.update(x, y, x["a"])
    assert list(CALLS) == [size] * (100 // size)
    assert change.n_discrepancy == 100 // size * size
    assert change.discrepancy == 0.0


def test_a_model_of_single_rows_is_asked_at_once(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model)
    for n, _ in enumerate(learn(change, model, observations(K + 9)), start=1):
        assert change.n_discrepancy == max(0, n - K)


def test_a_prediction_that_waits_for_its_batch_is_a_copy(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, batch_size=2, threshold=1.0)
    found_in(change, model, observations(K))
    y_pred, x = {0: 0.9, 1: 0.1}, {"a": 0, "b": 0}
    change.update(x, 0, y_pred)
    y_pred[1], x["a"] = 5.0, 1  # the caller's own, to be reused
    change.update({"a": 1, "b": 0}, 1, 1)
    assert (change.discrepancy, change.n_discrepancy) == (0.0, 2)

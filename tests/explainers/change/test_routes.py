"""Alarms of both routes, restarts, cooldown and batches: beside the procedure written out slowly, and case by case."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers import ChangeExplainer, InvalidParameterError, as_batch
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
from tests.explainers.oracles import smoothing_weights

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
            assert said_by(change.update(x, y, y_pred)) == naive.update(x, y, y_pred)
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


def test_the_discrepancy_alarms_where_it_exceeds_the_threshold_and_no_detector_is_needed(monkeypatch):
    # From observation K + 21 on the model is another one on half of the inputs.
    model = Scheduled((0, "a"), (K + 20, "b"))
    change = scripted(monkeypatch, model, detector=None, threshold=0.3)
    stream = observations(80, seed=2)
    distances = [float(x["a"] != x["b"]) if n > K + 20 else 0.0 for n, (x, _) in enumerate(stream, start=1)][K:]
    smoothed = [
        float(smoothing_weights(2 / (K + 1), n) @ distances[:n]) if n else 0.0 for n in range(len(distances) + 1)
    ]
    first = next(n for n, value in enumerate(smoothed) if value > 0.3) + K
    found = found_in(change, model, stream)
    assert list(found) == [first + K - 1]
    explanation = found[first + K - 1]
    assert (explanation.route, explanation.n_detected, explanation.detector) == ("discrepancy", first, None)
    assert change.n_alarms == {"detector": 0, "discrepancy": 1}
    assert (change.detector_name, change.detectors) == (None, [])


@pytest.mark.parametrize(("window", "first"), [(2, 1), (3, 1), (10, 5), (11, 5)])
def test_fewer_than_half_a_window_of_observations_do_not_alarm(monkeypatch, window, first):
    change = scripted(monkeypatch, Scheduled((0, "a")), detector=None, threshold=0.3, window=window)
    alarmed = []
    for number in range(1, 2 * window):
        # After the reference has been taken every distance is 1.
        change.update({"a": 1, "b": 0}, 1, 1 if number <= window else 0)
        if change.n_alarms["discrepancy"] and not alarmed:
            alarmed.append(number)
    assert alarmed == [window + first]


def test_after_a_rejection_the_discrepancy_is_quiet_for_a_window(monkeypatch):
    # The models differ on all that comes now, and on nothing in the reference's data: 10 of 20 rows, 0.5.
    model = Scheduled((0, "a"), (K + 1, "b"))
    change = scripted(monkeypatch, model, detector=None, threshold=0.7)
    same, other = ({"a": 0, "b": 0}, 0), ({"a": 1, "b": 0}, 1)
    assert found_in(change, model, [same] * (K + 1) + [other] * 59) == {}
    # The first distance is 0; 0.7 is exceeded by a smoothed mean with the n-th.
    values = [float(smoothing_weights(2 / (K + 1), n) @ ([0.0] + [1.0] * (n - 1))) for n in range(1, 20)]
    first = K + 1 + next(i for i, value in enumerate(values) if value > 0.7 and i + 1 >= K // 2)
    # Rejected K - 1 observations later; again when K more have gone by.
    detected = [first, first + 2 * K, first + 4 * K]
    assert [(r.n_detected, r.n_observations) for r in change.rejected] == [(d, d + K - 1) for d in detected]
    assert {(r.route, r.discrepancy, r.threshold) for r in change.rejected} == {("discrepancy", 0.5, 0.7)}
    assert change.n_alarms == {"detector": 0, "discrepancy": 3}
    assert not change.is_collecting


def test_the_quiet_after_a_rejection_is_not_for_the_detector(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [5, 5 + K])
    found_in(change, model, observations(60))
    assert [r.n_detected for r in change.rejected] == [K + 5, K + 5 + K]


def test_a_slow_drift_that_no_detector_sees_is_explained(monkeypatch):
    # Every 20 observations one more of ten inputs is predicted otherwise; the detector has no script: it never alarms.
    class Slow:
        n_learnt = 0

        def __call__(self, x):
            return x["a"] if x["i"] >= self.n_learnt // 20 else 1 - x["a"]

        def learn_one(self, x, y):
            self.n_learnt += 1

    stream = [({"a": i % 2, "b": 0, "i": i % 10}, i % 2) for i in range(400)]
    # A class that cannot be imported cannot be pickled: give the module's namespace one for the test.
    monkeypatch.setitem(globals(), "Slow", Slow)
    Slow.__qualname__ = "Slow"
    model = Slow()
    change = scripted(monkeypatch, model, threshold=0.3, window=20)
    found = found_in(change, model, stream)
    assert found
    assert {e.route for e in found.values()} == {"discrepancy"}
    assert change.n_alarms["detector"] == 0
    # The paper's procedure, beside it, says nothing.
    model = Slow()
    papers = scripted(monkeypatch, model, threshold=0.3, window=20, **PAPER)
    assert found_in(papers, model, stream) == {}
    assert papers.n_alarms.total() == 0


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


@pytest.mark.parametrize("max_restarts", [0, 1, 2])
def test_the_detector_starts_the_collection_again_so_often(monkeypatch, max_restarts):
    alarms = [5, 9, 14, 17]  # the values fed; the first value is of observation K + 1
    last = K + alarms[max_restarts]
    model = Scheduled((0, "a"), (last + 1, "not a"))  # until then it has not changed
    change = scripted(monkeypatch, model, alarms, threshold=0.3, watch_discrepancy=False, max_restarts=max_restarts)
    stream = observations(K + 40)
    found = found_in(change, model, stream[: K + 14])
    assert change.n_restarts == max_restarts
    assert change.is_collecting == (max_restarts > 0)
    found |= found_in(change, model, stream[K + 14 : last + K - 1])
    assert [(e.n_detected, e.n_observations, e.route) for e in found.values()] == [(last, last + K - 1, "detector")]
    ((_, explanation),) = found.items()
    data = stream[last - 1 : last + K - 1]
    assert [(dict(x), y) for x, y in change.snapshot()["reference"]["data"]] == data
    assert explanation.n_discrepancy == 2 * K
    assert change.n_restarts == max_restarts
    assert change.n_alarms == {"detector": 1, "discrepancy": 0}  # restarts are counted apart


def test_restarts_are_counted_anew_with_every_alarm(monkeypatch):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, [3, 5, 7, 20, 22, 24], watch_discrepancy=False, max_restarts=1)
    found_in(change, model, observations(70))
    assert [(r.n_detected, r.n_observations) for r in change.rejected] == [
        (K + 5, K + 5 + K - 1),
        (K + 22, K + 22 + K - 1),
    ]
    assert (change.n_restarts, change.n_alarms["detector"]) == (2, 2)


def test_only_the_detector_starts_a_collection_again(monkeypatch):
    # Distance 1 from K + 2 on: the discrepancy is above the threshold at every observation of the collection.
    model = Scheduled((0, "a"), (K + 1, "not a"))
    alone = scripted(monkeypatch, model, [2], threshold=0.3, max_restarts=5)
    ((number, explanation),) = found_in(alone, model, observations(30)).items()
    assert (explanation.route, explanation.n_detected, number) == ("detector", K + 2, K + 2 + K - 1)
    assert (alone.n_restarts, alone.n_alarms["discrepancy"]) == (0, 0)
    # The model has changed when the detector alarms, at K + 7: the discrepancy's alarm, at K + 5, stands.
    model = Scheduled((0, "a"), (K + 1, "not a"))
    stands = scripted(monkeypatch, model, [7, 9], threshold=0.3)
    ((number, explanation),) = found_in(stands, model, observations(30)).items()
    assert (explanation.route, explanation.n_detected, number) == ("discrepancy", K + 5, K + 5 + K - 1)
    assert (stands.n_restarts, stands.n_alarms) == (0, {"detector": 0, "discrepancy": 1})
    # It is as it was at K + 7, and changes afterwards: what was collected before says nothing.
    model = Scheduled((0, "a"), (K + 1, "not a"), (K + 6, "a"), (K + 8, "not a"))
    both = scripted(monkeypatch, model, [7], threshold=0.3)
    ((number, explanation),) = found_in(both, model, observations(30)).items()
    assert (explanation.route, explanation.n_detected, number) == ("detector", K + 7, K + 7 + K - 1)
    assert (both.n_restarts, both.n_alarms) == (1, {"detector": 0, "discrepancy": 1})


@pytest.mark.parametrize("min_observations", [None, K, K + 7])
def test_the_reference_is_taken_after_min_observations_from_the_last_window(monkeypatch, min_observations):
    model = Scheduled((0, "a"))
    change = scripted(monkeypatch, model, min_observations=min_observations)
    stream = observations(K + 20)
    at = min_observations or K
    found_in(change, model, stream[: at - 1])
    assert (change.reference_observation, change.is_collecting, change.detectors[0].fed) == (None, True, [])
    found_in(change, model, stream[at - 1 : at])
    assert (change.reference_observation, change.is_collecting) == (at, False)
    assert change.snapshot()["reference"]["data"] == stream[at - K : at]
    assert change.reference["pfi"].n_observations == K
    assert change.parameters["min_observations"] == at


def test_min_observations_below_the_window_is_refused():
    with pytest.raises(InvalidParameterError, match="min_observations"):
        ChangeExplainer(Scheduled((0, "a")), loss="squared", window=10, min_observations=9)


def test_no_alarm_is_taken_in_the_cooldown_after_an_explanation_and_a_rejection(monkeypatch):
    cooldown = 15
    model = Scheduled((0, "a"), (25, "not a"))
    # The detector alarms at every observation from K + 5 on; it is fed all the while.
    change = scripted(
        monkeypatch,
        model,
        range(5 + cooldown, 200),
        threshold=0.3,
        watch_discrepancy=False,
        max_restarts=0,
        cooldown=cooldown,
    )
    found = found_in(change, model, observations(120))
    first = K + 5 + cooldown
    assert list(found) == [first + K - 1]
    # Each next alarm is the first after the cooldown: the one after the explanation, and then after each rejection.
    length = K + cooldown
    assert [r.n_detected for r in change.rejected] == list(range(first + length, 120 - K, length))
    assert len(change.detectors[0].fed) == 120 - K


@pytest.mark.parametrize("batch_size", [1, 7, 23])
def test_in_batches_the_discrepancy_has_the_same_values_at_their_ends(monkeypatch, batch_size):
    models = [Scheduled((0, "a"), (K + 5, "b"), (K + 40, "a")) for _ in range(2)]
    # No alarms: the threshold cannot be exceeded.
    one, many = (
        scripted(monkeypatch, model, threshold=1.0, batch_size=size)
        for model, size in zip(models, (1, batch_size), strict=True)
    )
    values = []
    for n, (x, y) in enumerate(observations(90, seed=3), start=1):
        for change, model in zip((one, many), models, strict=True):
            list(learn(change, model, [(x, y)]))
        values.append((one.discrepancy, one.n_discrepancy))
        if n <= K:
            continue
        done = (n - K) // batch_size * batch_size
        assert (many.discrepancy, many.n_discrepancy) == (values[K + done - 1] if done else (None, 0))
    assert len(set(values)) > 40


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

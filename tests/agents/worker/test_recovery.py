"""A model that fails on whatever comes goes back to its last good state; where the records are at fault it does not."""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
from typing import Any

import pytest
import zstandard
from river import base

from attributary_agents.models.guards import good_state
from attributary_agents.models.guards.good_state import GoodState
from tests.agents.stand_ins import balances, header
from tests.agents.worker.test_label_kinds import SCALER, TREE, Job, _of

POISONED = "tests.agents.worker.test_recovery:poisoned"


class Poisoned(base.Classifier):
    """Learns everything; once it has learnt `poison`, it raises in the stage of that name for ever."""

    def __init__(self) -> None:
        self.n = {False: 1, True: 1}
        self.stage = ""

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if "predict" in (self.stage, x.get("bad")):
            raise RuntimeError("cannot predict")
        if self.stage == "nan":
            return {False: float("nan"), True: float("nan")}
        return {label: n / sum(self.n.values()) for label, n in self.n.items()}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        if "learn" in (self.stage, x.get("bad")):
            raise RuntimeError("cannot learn")
        self.n[y] += 1
        self.stage = x.get("poison", self.stage)


def poisoned() -> Poisoned:
    return Poisoned()


def job_of(**settings: Any) -> Job:
    return Job(None, **{"factory": POISONED, "change": None, **settings})


def send(job: Job, n: int = 1, **more: Any) -> list[str]:
    """Send n observations with more features; return the reasons of dead letters."""
    before = len(job.sent)
    for _ in range(n):
        x = {"a": job.rng.random(), "b": job.rng.random(), **more}
        job.value(json.dumps({"x": x, "y": x["a"] > 0.5}).encode())
    return [header(one, "attributary-dlq-reason") for one in job.sent[before:] if "dead" in one.topic]


def recovered(job: Job) -> list[dict[str, Any]]:
    """The first event of each time that the model went back."""
    events = [json.loads(one.value or b"") for one in job.sent if "incidents" in one.topic]
    return [event for event in events if event["what"] == "recovered" and event["revision"] == 1]


@pytest.mark.parametrize("change", [None, {"window": 40}])
@pytest.mark.parametrize("stage", ["predict", "learn", "nan"])
def test_a_poisoned_model_goes_back_and_loses_what_it_failed_on_before(
    stage: str, change: Any, caplog: pytest.LogCaptureFixture
) -> None:
    job = job_of(change=change)
    assert send(job, 130) == []
    assert send(job, poison=stage) == []
    reason = "prediction_not_finite" if stage == "nan" else "model_failed"
    assert send(job, 3) == [reason] * 2, "the third is handled again, by the state before"
    assert send(job, 100) == []
    (event,) = recovered(job)
    assert (event["model_id"], event["model_version"], event["observation"]) == ("m", "1", 131)
    assert (event["life"], event["severity"], event["advice"]) == ("confirmed", "critical", "look_at_inputs")
    assert event["source"]["offset"] == 133
    assert event["id"] == f"m:{job.partition.topic}:0:133:0"
    at, error = ("predict", "AbsurdPredictionError") if stage == "nan" else (stage, "RuntimeError")
    (evidence,) = event["evidence"]
    assert evidence["said"] == (
        f"3 observations in a row failed to {at} ({error}); went back to observation 100, forgets 31"
    )
    (line,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert line.getMessage() == event["sentence"]
    assert "was reset to an earlier state" in event["sentence"]
    assert job.state.n_observations == 232
    assert sum(job.state.model.n.values()) == 2 + 100 + 101
    assert +job.state.counts.recoveries == {"recovered": 1, "forgotten": 31}
    assert all(explainer.model is job.state.model for explainer in job.state.explainers.values())
    assert balances(job.partition.counters)


@pytest.mark.parametrize(
    "copy", [b"no zstd", zstandard.compress(pickle.dumps(subprocess.run)), zstandard.compress(b"x")]
)
def test_a_copy_that_cannot_be_read_is_told_and_ends_nothing(copy: bytes, caplog: pytest.LogCaptureFixture) -> None:
    job = job_of()
    assert send(job, 130) == []
    job.state.good.copy = copy  # as whoever can write states may leave it
    assert send(job, poison="learn") == []
    assert send(job, 10) == ["model_failed"] * 10
    lines = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert ["its last good state cannot be read" in line for line in lines].count(True) == 1
    assert all("attributary models reset m" in line for line in lines)
    assert recovered(job) == []
    assert balances(job.partition.counters)


def test_the_explainers_keep_what_they_have_stored() -> None:
    job = job_of()
    send(job, 130)
    (explainer,) = job.state.explainers.values()
    n_stored = len(explainer.reservoir.rows)
    send(job, poison="learn")
    send(job, 3)
    (explainer,) = job.state.explainers.values()
    assert len(explainer.reservoir.rows) >= n_stored > 50


@pytest.mark.parametrize("stage", ["predict", "learn"])
def test_records_at_fault_change_nothing_and_are_examined_ever_more_rarely(
    stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[int] = []
    load = GoodState.observations

    def count(good: GoodState, read: Any) -> Any:
        loaded.append(good.n_failed)
        return load(good, read)

    monkeypatch.setattr(GoodState, "observations", count)
    job = job_of()
    send(job, 130)
    model = job.state.model
    assert send(job, 500, bad=stage) == ["model_failed"] * 500
    assert loaded == [3, 6, 12, 24, 48, 96, 192, 384]
    assert job.state.model is model
    assert recovered(job) == []
    assert send(job, 20) == []
    send(job, 300, bad=stage)
    assert len(loaded) == 8, "and none of them is nearer than the last"
    assert balances(job.partition.counters)


def test_a_model_that_fails_from_the_first_record_on_is_left_as_it_is() -> None:
    job = job_of()
    assert send(job, 50, bad="learn") == ["model_failed"] * 50
    assert recovered(job) == []
    assert send(job, 5) == []


def test_a_model_that_was_ruined_by_its_first_record_begins_again() -> None:
    job = job_of()
    send(job, poison="learn")
    assert send(job, 20) == ["model_failed"] * 2
    (event,) = recovered(job)
    assert event["evidence"][0]["said"].endswith("went back to observation 0, forgets 1")


@pytest.mark.parametrize("stop_at", [0, 60, 131, 132, 133, 134, 150])
def test_what_comes_after_a_restart_is_what_would_have_come(stop_at: int) -> None:
    whole, stopped = job_of(change={"window": 40}), job_of(change={"window": 40})
    for n in range(260):
        for job in (whole, stopped):
            send(job, **({"poison": "learn"} if n == 131 else {}))
        if n == stop_at:
            stopped.restart()
    assert stopped.sent == whole.sent
    assert len(recovered(whole)) == 1


def test_a_model_that_does_not_learn_is_not_what_is_at_fault() -> None:
    job = job_of(learn=False)
    send(job, 130)
    assert send(job, 40, bad="predict") == ["model_failed"] * 40
    assert job.state.good.copy is None
    assert recovered(job) == []


@pytest.mark.parametrize(
    "model",
    [
        _of("forest.ARFClassifier", n_models=3, seed=1),
        TREE,
        _of("ensemble.SRPClassifier", n_models=3, seed=1, model=TREE),
        _of("ensemble.ADWINBaggingClassifier", n_models=3, seed=1, model=TREE),
        [SCALER, TREE],
    ],
)
def test_labels_of_two_kinds_cost_little_where_any_is_taken(model: Any) -> None:
    """What ruins trees of River for ever, where the configuration lets it through."""
    job = Job(model, label="any", explainers={"pfi": {"n_samples": 2}})
    assert job.send(*[None] * 300) == []
    lost = len(job.send("true", *[None] * 100))
    job.restart()
    lost += len(job.send(*[None] * 50))
    assert lost <= 2
    assert balances(job.partition.counters)


def test_a_copy_is_taken_ever_more_rarely_up_to_every_thousand() -> None:
    good, at = GoodState(), []
    good.begin({}, 7)
    for n in range(8, 5008):
        good.note({}, n, {"a": 1.0}, True)
        if good.at == n:
            at.append(n - 7)
    assert at == [50, 100, 200, 400, 800, 1600, 2600, 3600, 4600]
    assert len(good.witnesses) == 5


def test_no_copy_is_taken_soon_after_a_failure() -> None:
    good = GoodState()
    good.begin({}, 0)
    for n in range(1, 60):
        good.note({}, n, {}, True)
        if n == 45:
            good.note_failure()
    assert good.at == 0
    for n in range(60, 66):
        good.note({}, n, {}, True)
    assert good.at == 45 + good_state._CLEAN
    again = GoodState.from_snapshot(good.snapshot())
    assert vars(again) == vars(good)

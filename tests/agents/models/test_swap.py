"""A version takes over: what starts afresh, what stays, what is explained, and that nothing is left half-done."""

from __future__ import annotations

import importlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from river import linear_model

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.models.prequential import StepError, prequential
from attributary_agents.models.swap import swap
from attributary_agents.models.versions import Version, configured_as
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from attributary_explainers import dump_model, expected_pfi
from attributary_topics import IncidentEffect, IncidentEvent, MeanEstimate, Source
from tests.agents.models.test_prequential import FEW, importances, incidents, run, state_of
from tests.agents.stand_ins import (
    CONTRARY_FACTORY,
    FACTORY,
    MODELS,
    TOPIC,
    CountingClassifier,
    config_of,
    contrary_classifier,
    header,
    observations,
)
from tests.delivery.remains import checkpoint

SLICES = 4
"""Observations after the window of a version with which an explanation is made."""
CHANGE = {"window": 40, "threshold": 0.2, "importances": ["pfi", "sage"], "loss": "zero_one"}
SOURCE = Source("topic", 0, 100)
QUIET = {"every": 1000, "min_observations": 1000}


class Raising(CountingClassifier):
    """Cannot predict what has come before: it needs a feature that was not there."""

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        if "new" not in x:
            raise KeyError("new")
        return super().predict_proba_one(x)


def seen(n: int = 100, **settings: Any) -> ModelState:
    state = state_of(**{"explainers": FEW, "change": CHANGE, "learn": False, "publish": QUIET, **settings})
    state.model.counts = {False: [9, 1], True: [1, 9]}
    run(state, observations(n))
    return state


def contrary() -> Version:
    return Version("2", {"factory": CONTRARY_FACTORY}, contrary_classifier(), 7)


def test_it_is_said_at_once_and_the_explanation_compares_both_on_what_neither_has_learnt() -> None:
    state = seen()
    old = state.model
    swapped, (said,) = swap(state, contrary(), SOURCE)

    assert isinstance(said, IncidentEvent)
    assert (said.id, said.number, said.revision) == ("m:topic:0:100:0", 1, 1)
    assert (said.what, said.life, said.model_version, said.explanation) == ("version", "suspected", "2", None)
    assert (said.observation, said.since.observation, said.source) == (100, 101, SOURCE)
    assert swapped.counts.versions.total() == 0, "not known yet"
    (event,) = incidents(run(swapped, observations(150)[100:]))
    assert (event.id, event.number, event.revision) == (said.id, 1, 2)
    assert (event.what, event.life, event.severity, event.advice) == ("version", "confirmed", "critical", "roll_back")
    assert (event.observation, event.since.observation) == (140 + SLICES, 101)
    assert event.effects[1] == IncidentEffect(
        "error rate", MeanEstimate(0.0, 0.0), MeanEstimate(1.0, 0.0), MeanEstimate(1.0, 0.0)
    )
    told = event.explanation
    assert told is not None
    assert (told["route"], told["verdict"], told["onset"], told["pattern"]) == ("version", None, None, None)
    assert (told["model_version_before"], told["model_version"]) == ("1", "2")
    assert (told["observation"], told["detected_at"], told["reference_at"]) == (140 + SLICES, 101, 100)
    assert (told["discrepancy"], told["n_discrepancy"], told["window"]) == (pytest.approx(2.0, abs=0.1), 40, 40)
    losses = told["losses"]
    assert (losses["reference_then"], losses["worsened"]) == (None, None)
    assert (losses["reference_now"]["loss"], losses["model_now"]["loss"]) == pytest.approx((2 * 0.1**2, 2 * 0.9**2))
    assert (losses["gain"]["loss"], losses["gain"]["low"]) == pytest.approx((-1.6, -1.6))
    assert list(told["importances"]) == ["pfi", "sage"]
    fresh = [(o.x, o.y) for o in observations(140)[-40:]]
    for method in told["importances"].values():
        assert (method["before_loss"], method["after_loss"], method["n"]) == (0.0, 1.0, 40)
    # The exact importances of both on those forty: the one observation in half of all pairs changes the label.
    features = told["importances"]["pfi"]["features"]
    for model, side in ((old, "before"), (swapped.model, "after")):
        exact = expected_pfi(model, fresh, loss="zero_one")
        exact = getattr(exact, "importance", exact)
        for name, feature in features.items():
            assert abs(feature[side] - exact[name]) <= 4 * feature[f"{side}_std_error"] + 1e-12
    assert features["a"]["significant"]
    assert features["b"]["delta"] == 0.0
    assert event.features["a"].delta == features["a"]["delta"]
    assert swapped.counts.versions == {"explained": 1, "unexplained": 0, "refused": 0}
    assert +swapped.counts.incidents == {("version", "critical"): 1}


def test_equal_versions_name_no_feature() -> None:
    state = seen()
    twin = CountingClassifier()
    twin.counts = {False: [9, 1], True: [1, 9]}
    swapped, (said,) = swap(state, Version("2", {}, twin), SOURCE)
    (event,) = incidents(run(swapped, observations(150)[100:]))
    assert isinstance(said, IncidentEvent)
    assert event.explanation is not None
    assert (said.model_version, event.explanation["discrepancy"]) == ("2", 0.0)
    assert (event.severity, event.advice) == ("info", "nothing")
    for method in event.explanation["importances"].values():
        assert not any(feature["significant"] for feature in method["features"].values())
    assert not any(feature.significant for feature in event.features.values())


def test_what_is_of_the_old_version_starts_afresh_and_the_rest_stays() -> None:
    state = seen()
    rows = {name: list(explainer.reservoir.rows) for name, explainer in state.explainers.items()}
    swapped, events = swap(state, contrary(), SOURCE)

    assert (swapped.version, swapped.current.deployed, swapped.current.spec) == ("2", 7, {"factory": CONTRARY_FACTORY})
    assert swapped.n_observations == 100
    assert (swapped.model_loss.value, swapped.baseline_loss.value) == (None, None)
    for name, explainer in swapped.explainers.items():
        assert explainer.n_observations == 0
        assert explainer.model is swapped.model
        assert list(explainer.reservoir.rows) == rows[name]
    assert swapped.change is not None
    assert swapped.change.model is swapped.model
    # The first observation is explained at once, and by the new version.
    more = run(swapped, observations(130)[100:])
    assert all(explainer.n_observations == 30 for explainer in swapped.explainers.values())
    assert swapped.n_observations == 130
    assert swapped.model_loss.value == pytest.approx(2 * 0.9**2)
    assert all(event.model_version == "2" for event in importances(more))
    assert events


def test_the_reference_for_shift_is_taken_again_once_the_new_importance_has_settled() -> None:
    publish = {"every": 10, "min_observations": 1000, "reference_after": 20}
    state = seen(50, publish=publish)
    swapped, _ = swap(state, contrary(), SOURCE)
    events = importances(run(swapped, observations(90)[50:]))
    pfi = [(event.observation, event.reference_id) for event in events if event.explainer == "pfi"]
    assert pfi == [(60, "20"), (70, "20"), (80, "71"), (90, "71")]


def test_without_change_explanation_a_version_is_judged_by_its_loss_alone(caplog: pytest.LogCaptureFixture) -> None:
    swapped, (said,) = swap(seen(1000, change=None), contrary(), Source("topic", 0, 1000))
    assert isinstance(said, IncidentEvent)
    assert (said.what, said.life, swapped.version) == ("version", "suspected", "2")
    assert swapped.counts.versions["unexplained"] == 1
    assert "change: null" in caplog.text
    events = incidents(run(swapped, observations(2300)[1000:]))
    assert [(event.revision, event.life) for event in events] == [(2, "confirmed")]
    assert (events[0].id, events[0].severity, events[0].explanation) == (said.id, "critical", None)
    assert 1001 + 1250 <= events[0].observation <= 1001 + 1250 + 100, "by then it is clear that nobody compares the two"


def test_a_version_that_is_replaced_before_it_could_be_compared_is_unexplained() -> None:
    swapped, (first,) = swap(seen(1), contrary(), SOURCE)
    run(swapped, observations(11)[1:])
    later = Source("topic", 0, 11)
    swapped, (ended, second) = swap(swapped, Version("3", {}, CountingClassifier()), later)
    for event in (first, ended, second):
        assert isinstance(event, IncidentEvent)
        assert event.what == "version"
    assert (ended.id, ended.revision, ended.life, ended.reason) == ("m:topic:0:100:0", 2, "over", "replaced")
    assert (second.id, second.revision, second.life) == ("m:topic:0:11:1", 1, "suspected")
    assert (first.model_version, ended.model_version, second.model_version) == ("2", "2", "3")
    assert swapped.counts.versions == {"explained": 0, "unexplained": 1, "refused": 0}


def test_a_new_version_that_raises_is_compared_on_what_it_predicts() -> None:
    state = seen()
    swapped, _ = swap(state, Version("2", {}, Raising()), SOURCE)
    with pytest.raises(StepError, match="new"):
        run(swapped, observations(101)[100:])
    stream = [type(o)(o.model_id, {**o.x, "new": 1.0}, o.y) for o in observations(150)[100:]]
    (event,) = incidents(run(swapped, stream))
    assert event.explanation is not None
    assert (event.explanation["route"], event.explanation["n_discrepancy"]) == ("version", 40)
    assert (event.life, event.observation) == ("confirmed", 140 + SLICES + 1)
    assert all(explainer.n_observations > 0 for explainer in swapped.explainers.values())


def test_a_version_of_another_kind_takes_over_unexplained() -> None:
    state = seen(change={**CHANGE, "loss": None})
    swapped, (said,) = swap(state, Version("2", {}, linear_model.LinearRegression()), SOURCE)
    assert isinstance(said, IncidentEvent)
    assert (said.what, said.life, said.loss) == ("version", "suspected", "squared")
    assert [effect.name for effect in said.effects] == ["loss", "mean absolute error"]
    assert [effect.before for effect in said.effects] == [None] * 2, "the old one had another loss"
    assert swapped.counts.versions["unexplained"] == 1
    assert swapped.loss.name == "squared"
    assert swapped.change is not None
    assert swapped.change.distance.name == "number"
    assert {explainer.loss.name for explainer in swapped.explainers.values()} == {"squared"}
    (event,) = incidents(run(swapped, [type(o)(o.model_id, o.x, float(o.y)) for o in observations(160)[100:]]))
    assert (event.id, event.life, event.explanation) == (said.id, "confirmed", None)
    assert event.headline == "m has a new version", "nobody knows whether it is as good"
    assert event.observation == 101 + 1.25 * CHANGE["window"] + 1
    # It goes on after a restart: the means are of the new loss.
    again = decode_state("m", swapped.config, encode_state(swapped)).incident_watch
    assert again is not None
    assert again.open_id == said.id


def test_a_version_of_another_kind_ends_the_open_incident_which_is_of_the_old_version_to_the_end() -> None:
    swapped, (first,) = swap(seen(change={**CHANGE, "loss": None}), contrary(), SOURCE)
    (known,) = incidents(run(swapped, observations(150)[100:]))
    third = Version("3", {}, linear_model.LinearRegression())
    swapped, (ended, second) = swap(swapped, third, Source("topic", 0, 150))
    assert isinstance(first, IncidentEvent)
    assert isinstance(ended, IncidentEvent)
    assert isinstance(second, IncidentEvent)
    assert (ended.id, ended.revision, ended.life, ended.reason) == (first.id, 3, "over", "replaced")
    assert (ended.model_version, ended.loss, ended.loss_unit) == ("2", "brier", "squared probability")
    assert [one.delta for one in ended.features.values()] == [one.delta for one in known.features.values()]
    assert ended.features["a"].significant
    assert [effect.name for effect in ended.effects] == ["loss", "error rate"]
    assert ended.effects[0].before == known.effects[0].before
    assert ended.explanation == known.explanation
    assert (second.id, second.model_version, second.loss) == ("m:topic:0:150:1", "3", "squared")
    assert (second.features, second.explanation) == ({}, None)


def test_an_incident_that_is_open_while_the_model_is_measured_in_another_way_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    swapped, _ = swap(seen(), contrary(), SOURCE)
    other = state_of(explainers=FEW, change={**CHANGE, "window": 50}, learn=False, publish=QUIET).config
    again = decode_state("m", other, encode_state(swapped)).incident_watch
    assert again is not None
    assert again.open is None
    assert "the incident m:topic:0:100:0 stays open, and nothing will close it" in caplog.text


def test_a_version_that_cannot_be_explained_leaves_the_state_as_it_was() -> None:
    state = seen(loss="cross_entropy")
    twin = seen(loss="cross_entropy")
    with pytest.raises(Exception, match="regressor"):
        swap(state, Version("2", {}, linear_model.LinearRegression()), SOURCE)
    for one in (state, twin):
        run(one, observations(150)[100:])
    assert state.version == "1"
    assert state.counts == twin.counts
    assert state.incident_watch is not None
    assert twin.incident_watch is not None
    assert state.incident_watch.snapshot() == twin.incident_watch.snapshot()
    for name, explainer in state.explainers.items():
        assert explainer.importance == twin.explainers[name].importance


# In a partition: the configuration, the topic, and what a worker does with them.


class Worker:
    """A partition with its table, that can be stopped and started with another configuration."""

    def __init__(self, config: Config, n_observed: int = 0) -> None:
        self.table: dict[bytes, bytes] = {}
        self.sent: list[Outgoing] = []
        self.n_controls = 0
        self.start(config)
        self.observe(n_observed)

    def start(self, config: Config) -> None:
        self.partition = Partition(TOPIC, 0, config, self.table.get)
        self.control = PartitionControl(MODELS, self.partition, self.table.get)

    def stop(self) -> None:
        checkpoint(self.partition, self.table)

    def restart(self, config: Config) -> None:
        self.stop()
        self.start(config)

    def observe(self, n: int) -> list[dict[str, Any]]:
        """Handle so many more observations; the incidents that were sent."""
        began = self.partition.offset + 1
        found = []
        for offset, one in enumerate(observations(began + n)[began:], start=began):
            value = json.dumps({"x": one.x, "y": one.y}).encode()
            for sent in self.partition.handle(Record(TOPIC, 0, offset, offset, b"m", value)):
                self.sent.append(sent)
                if sent.topic == "attributary.incidents.v1":
                    found.append(json.loads(sent.value or b""))
        return found

    def deploy(self, version: str, spec: dict[str, Any]) -> list[str]:
        """Take a control record; the reasons of its dead letters."""
        value = json.dumps({"version": version, **spec}).encode()
        step = self.control.take(Record(MODELS, 0, self.n_controls, 0, b"m", value), -1)
        self.n_controls += 1
        self.table.update(step.writes)
        return [header(one, "attributary-dlq-reason") for one in step.outgoing]

    @property
    def state(self) -> ModelState:
        return self.partition.models.find_or_make("m")


FACTORIES = [FACTORY, CONTRARY_FACTORY, "tests.agents.models.test_swap:failing"]


def config(**model: Any) -> Config:
    chosen = {"factory": FACTORY, "explainers": {"pfi": {"n_samples": 1}}, "change": CHANGE, "publish": QUIET, **model}
    return parse_config(
        {
            "models": {"m": chosen},
            "control": {"allowed": ["river.", "tests.", "attributary_test_gone", *FACTORIES]},
        }
    )


NEXT = {"version": "2", "factory": CONTRARY_FACTORY}


@pytest.mark.parametrize("changed", [NEXT, {"factory": CONTRARY_FACTORY}, {"version": "2"}])
def test_another_model_in_the_configuration_takes_over_explained(changed: dict[str, Any]) -> None:
    worker = Worker(config(), 60)
    old = worker.state.model.counts
    worker.restart(config(**changed))
    assert worker.state.model.counts == old, "until the next observation"
    assert worker.state.version == "1"
    (event,) = worker.observe(1)
    assert (event["what"], event["life"]) == ("version", "suspected")
    assert event["model_version"] == changed.get("version", "1")
    assert (event["since"]["observation"], event["source"]["offset"]) == (61, 60)
    assert worker.state.n_observations == 61
    assert worker.state.configured == configured_as(config(**changed).models["m"])
    worker.restart(config(**changed))
    assert worker.observe(38) == [], "once"
    (explained,) = worker.observe(5)
    assert (explained["id"], explained["life"]) == (event["id"], "confirmed") == (f"m:{TOPIC}:0:60:0", "confirmed")
    assert (explained["observation"], explained["source"]["offset"]) == (100 + SLICES, 99 + SLICES)
    assert explained["explanation"]["model_version_before"] == "1"
    assert worker.state.counts.versions["explained"] == 1


def test_the_budget_of_explaining_holds_up_no_explanation_of_a_change() -> None:
    def told(stride: int) -> list[dict[str, Any]]:
        worker = Worker(config(explain={"budget": 0.9}), 60)
        worker.state.stride = stride
        worker.deploy("2", {"factory": CONTRARY_FACTORY})
        found = worker.observe(41 + SLICES)
        assert worker.state.explainers["pfi"].n_observations == sum(n % stride == 0 for n in range(61, 102 + SLICES))
        return found

    of_few = told(64)
    assert [(event["what"], event["life"]) for event in of_few] == [("version", "suspected"), ("version", "confirmed")]
    assert of_few[1]["explanation"] is not None
    assert of_few == told(1)


def test_learn_alone_keeps_the_model() -> None:
    worker = Worker(config(), 60)
    old = json.dumps(worker.state.model.counts)
    worker.restart(config(learn=False))
    assert worker.observe(10) == []
    assert json.dumps(worker.state.model.counts) == old
    assert worker.state.explainers["pfi"].n_observations == 69
    assert worker.state.counts.versions.total() == 0


def test_a_deployment_outlives_a_restart_under_the_same_configuration() -> None:
    worker = Worker(config(), 60)
    assert worker.deploy("2", {"factory": CONTRARY_FACTORY}) == []
    worker.restart(config(alpha=0.5))
    (event,) = worker.observe(1)
    assert (event["model_version"], event["source"]["offset"]) == ("2", 60)
    worker.restart(config())
    assert worker.observe(5) == []
    assert worker.state.version == "2"


@pytest.mark.parametrize("taken_over", [True, False])
def test_a_changed_configuration_wins_over_older_deployments(taken_over: bool) -> None:
    worker = Worker(config(), 60)
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    if taken_over:
        worker.observe(20)
    worker.restart(config(version="3"))
    *ended, event = worker.observe(1)
    assert [(one["reason"], one["model_version"]) for one in ended] == [("replaced", "2")] * taken_over
    assert (event["what"], event["model_version"]) == ("version", "3")
    # And the same configuration as at the beginning is a changed one then: the deployment does not come back.
    worker.restart(config())
    last, event = worker.observe(1)
    assert (last["life"], last["reason"], last["model_version"]) == ("over", "replaced", "3")
    assert (event["what"], event["model_version"]) == ("version", "1")
    assert worker.observe(5) == []


def test_a_deployment_under_the_changed_configuration_comes_instead_of_it() -> None:
    worker = Worker(config(), 60)
    worker.restart(config(version="3"))
    worker.deploy("4", {"factory": CONTRARY_FACTORY})
    (event,) = worker.observe(1)
    assert (event["what"], event["model_version"]) == ("version", "4")
    worker.restart(config(version="3"))
    assert worker.observe(5) == []


def test_a_model_without_observations_begins_with_the_deployed_version() -> None:
    worker = Worker(config())
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    worker.restart(config())
    assert worker.observe(1) == []
    assert worker.state.version == "2"
    assert worker.state.model.counts != new_state("m", config().models["m"]).model.counts
    assert worker.state.counts.versions.total() == 0
    assert worker.observe(100) == []


def test_the_same_version_again_is_ignored_and_another_model_of_that_name_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    worker = Worker(config(), 60)
    assert worker.deploy("1", {"factory": FACTORY}) == []
    assert "version 1 is deployed already" in caplog.text
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    caplog.clear()
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    assert "version 2 is deployed already" in caplog.text
    worker.observe(1)
    caplog.clear()
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    assert "version 2 is deployed already" in caplog.text
    worker.deploy("2", {"factory": FACTORY})
    ended, event = worker.observe(1)
    assert (ended["reason"], event["what"], event["life"]) == ("replaced", "version", "suspected")
    assert (ended["model_version"], event["model_version"]) == ("2", "2")


def module_with_a_class(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Write a module that defines `Mine`; return what takes the class away."""
    code = "from tests.agents.stand_ins import CountingClassifier\nclass Mine(CountingClassifier): pass\nmake = Mine\n"
    (folder / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(folder)
    return lambda: monkeypatch.delattr(importlib.import_module(name), "Mine")


def test_a_class_that_has_gone_starts_afresh_and_says_that_this_change_could_not_be_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leave = module_with_a_class(tmp_path, monkeypatch, "attributary_test_leaving")
    worker = Worker(config(factory="attributary_test_leaving:make"), 60)
    worker.stop()
    leave()
    worker.start(config(version="2"))
    assert worker.observe(1) == []
    assert (worker.state.version, worker.state.n_observations, worker.state.offset) == ("2", 1, 60)
    assert "the change from version 1 cannot be explained" in caplog.text
    assert "Mine" in caplog.text


def test_a_deployed_class_that_has_gone_leaves_the_old_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leave = module_with_a_class(tmp_path, monkeypatch, "attributary_test_gone")
    worker = Worker(config(), 60)
    assert worker.deploy("2", {"model": {"class": "attributary_test_gone.Mine"}}) == []
    leave()
    assert worker.observe(10) == []
    assert (worker.state.version, worker.state.n_observations) == ("1", 70)
    assert worker.state.counts.versions["refused"] == 1
    assert "version 1 stays, 2 cannot take over" in caplog.text
    assert caplog.text.count("cannot take over") == 1


def test_the_event_of_a_version_is_sent_although_its_first_observation_fails() -> None:
    worker = Worker(config(), 60)
    worker.deploy("2", {"factory": "tests.agents.models.test_swap:failing"})
    (event,) = worker.observe(1)
    assert (event["what"], event["source"]["offset"]) == ("version", 60)
    incident, letter = worker.sent[-2:]
    assert header(incident, "ce_id") == event["id"] == f"m:{TOPIC}:0:60:0"
    assert header(letter, "attributary-dlq-reason") == "model_failed"
    assert worker.state.version == "2"
    assert worker.state.failed_offsets == {60: "model_failed"}


def failing() -> Any:
    model = FailsOnce()
    model.counts = {False: [1, 9], True: [9, 1]}
    return model


class FailsOnce(CountingClassifier):
    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        raise ValueError("not yet")


def test_a_deployment_for_a_model_of_another_partition_is_a_dead_letter() -> None:
    worker = Worker(config(), 5)
    worker.stop()
    partition = Partition(TOPIC, 1, config(), worker.table.get)
    control = PartitionControl(MODELS, partition, worker.table.get)
    value = json.dumps({"version": "2", "factory": CONTRARY_FACTORY}).encode()
    step = control.take(Record(MODELS, 1, 0, 0, b"m", value), -1)
    assert [header(one, "attributary-dlq-reason") for one in step.outgoing] == ["model_on_two_partitions"]
    assert control.counters.consumed == 1


def test_a_new_model_is_a_copy_of_its_own_each_time() -> None:
    """The stored bytes make the model: two replays that learn share nothing."""
    worker = Worker(config())
    worker.deploy("2", {"factory": CONTRARY_FACTORY})
    worker.observe(30)
    after = dump_model(worker.state.model.counts)
    worker.start(config())
    worker.observe(30)
    assert dump_model(worker.state.model.counts) == after


def test_prequential_alone_never_changes_the_version() -> None:
    state = new_state("m", config_of().models["m"])
    for i, one in enumerate(observations(20)):
        prequential(state, one, Source("topic", 0, i), i)
    assert (state.version, state.current.deployed) == ("1", -1)

"""Which version a model of a registry has: the models topic's, at the same observation after every restart."""

from __future__ import annotations

import logging
from typing import Any

import orjson
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import DeploymentError
from attributary_agents.models.deployments import Job
from attributary_agents.models.versions import configured_version
from attributary_agents.state.codec import encode_state
from attributary_agents.state.deployment_log import decode_log
from attributary_agents.state.names import control_key
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers import dump_model
from attributary_topics import Deployment
from tests.agents.stand_ins import FACTORY, MODELS, TOPIC, counting_classifier

ALIAS = {"mlflow": "models:/bank@champion"}
KEY = control_key("m", 0)


def config(model: dict[str, Any] = ALIAS, **given: Any) -> Config:
    return parse_config(
        {
            "models": {"m": {"model": model, "learn": False, **given}, "other": {"factory": FACTORY}},
            "control": {"allowed": ["river.", "tests.agents"]},
        }
    )


def observation(offset: int, model_id: str = "m") -> Record:
    value = orjson.dumps({"x": {"a": offset % 7 - 3.0, "b": 1.0}, "y": offset % 2 == 0})
    return Record(TOPIC, 0, offset, 1000 * offset, model_id.encode(), value)


def deployment(version: int, offset: int) -> Record:
    value = {"version": str(version), "mlflow": f"models:/bank/{version}", "sha256": f"{version}" * 64}
    return Record(MODELS, 0, offset, 0, b"m", orjson.dumps(value))


def built(_deployment: Deployment) -> bytes:
    return dump_model(counting_classifier())


class Run:
    """One owner of a partition, with a store that outlives it."""

    def __init__(self, store: dict[bytes, bytes], chosen: Config | None = None) -> None:
        self.store = store
        self.partition = Partition(TOPIC, 0, chosen or config(), store.get)
        self.control = PartitionControl(MODELS, self.partition, store.get)

    def deploy(self, version: int, offset: int, backlog_end: int = -1) -> None:
        self.store.update(self.control.take(deployment(version, offset), backlog_end, built).writes)

    def versions(self, *offsets: int) -> list[str]:
        found = []
        for offset in offsets:
            self.partition.handle(observation(offset))
            found.append(self.partition.models["m"].version)
        return found

    def snapshot(self) -> None:
        self.store[b"m"] = encode_state(self.partition.models["m"])

    @property
    def awaits(self) -> bool:
        return self.partition.models.awaits_version("m")


def test_a_model_awaits_its_first_version_which_holds_for_the_whole_backlog() -> None:
    run = Run({})
    assert run.awaits
    assert not run.partition.models.awaits_version("other")
    run.deploy(4, 0, backlog_end=1000)
    assert not run.awaits
    (entry,) = decode_log("m", run.store[KEY]).entries
    assert (entry.after, entry.version, entry.spec["mlflow"]) == (-1, "4", "models:/bank/4")
    assert run.versions(0, 1) == ["4", "4"]
    run.deploy(5, 1, backlog_end=3)
    assert run.versions(2, 3, 4) == ["4", "4", "5"]


def test_a_version_that_cannot_be_built_is_refused_with_what_to_do_and_can_be_sent_again() -> None:
    """The alias names it still, so that nothing sends it again by itself."""
    run = Run({})
    run.deploy(4, 0)
    run.versions(0)

    def broken(_deployment: Deployment) -> bytes:
        raise DeploymentError("models:/bank/5: No module named 'mine': install it.", "unusable_model")

    outcome = run.control.take(deployment(5, 1), -1, broken)
    (letter,) = outcome.outgoing
    headers = dict(letter.headers)
    assert headers["attributary-dlq-reason"] == b"unusable_model"
    assert headers["attributary-dlq-message"].decode() == (
        "models:/bank/5: No module named 'mine': install it. The model keeps what it has: register another version "
        "and move the alias, or mend the cause and send this one again: "
        "`attributary models deploy m --mlflow models:/bank/5`"
    )
    assert run.versions(1, 2) == ["4", "4"]
    assert run.control.find_wanted(deployment(5, 2)) is not None, "the same once more is taken"
    run.deploy(5, 2)
    assert run.versions(3) == ["5"]


def test_what_other_models_had_before_it_stays_theirs() -> None:
    run = Run({})
    for offset in range(5):
        run.partition.handle(observation(offset, "other"))
    run.deploy(4, 0, backlog_end=100)
    assert decode_log("m", run.store[KEY]).entries[0].after == 4
    assert run.versions(5) == ["4"]


@pytest.mark.parametrize("stored_at", [None, 1, 3, 5])
def test_another_owner_takes_the_same_versions_at_the_same_observations(stored_at: int | None) -> None:
    run, expected = Run({}), ["4", "4", "4", "5", "5", "5"]
    run.deploy(4, 0)
    assert run.versions(0, 1, 2) == expected[:3] or stored_at == 1
    store = run.store
    if stored_at == 1:
        run = Run(store := {}, config())
        run.deploy(4, 0)
        run.versions(0, 1)
        run.snapshot()
        run.versions(2)
    run.deploy(5, 1, backlog_end=2)
    run.versions(3)
    if stored_at == 3:
        run.snapshot()
    run.versions(4, 5)
    if stored_at == 5:
        run.snapshot()
    again = Run(store)
    assert not again.awaits
    begin = 0 if stored_at is None else stored_at + 1
    for offset in range(begin):
        again.partition.handle(observation(offset))  # delivered again, and in the state already
    assert again.versions(*range(begin, 6)) == expected[begin:]


def test_a_version_that_comes_twice_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    """Two processes may look at an alias at once, for a moment."""
    run = Run({})
    calls: list[str] = []

    def counted(one: Deployment) -> bytes:
        calls.append(one.version)
        return built(one)

    for offset, version in enumerate((4, 4, 5, 5)):
        record = deployment(version, offset)
        assert (run.control.find_wanted(record) is None) == (offset % 2 == 1)
        with caplog.at_level(logging.INFO, "attributary_agents"):
            run.store.update(run.control.take(record, -1, counted).writes)
        assert run.versions(2 * offset, 2 * offset + 1) == [str(version)] * 2
    assert calls == ["4", "5"]
    assert caplog.text.count("is deployed already; ignored") == 2
    assert run.control.counters.used == 4


def test_a_configuration_that_names_an_alias_in_place_of_a_class_keeps_the_model() -> None:
    store: dict[bytes, bytes] = {}
    before = Run(store, config({"class": "tests.agents.stand_ins.CountingClassifier"}))
    assert before.versions(0, 1) == ["1", "1"]
    before.snapshot()
    run = Run(store)
    assert not run.awaits
    assert run.versions(2, 3) == ["1", "1"]
    run.deploy(4, 0, backlog_end=4)
    assert run.versions(4, 5) == ["1", "4"]


def test_back_from_a_class_the_last_deployment_says_which_version() -> None:
    store: dict[bytes, bytes] = {}
    run = Run(store)
    run.deploy(4, 0)
    run.versions(0, 1)
    run.snapshot()
    run = Run(store, config({"class": "tests.agents.stand_ins.CountingClassifier"}))
    assert run.versions(2, 3) == ["1", "1"]
    run.snapshot()
    for named in ("models:/bank@champion", "models:/bank@challenger"):
        run = Run(dict(store), config({"mlflow": named}))
        assert run.versions(4, 5) == ["4", "4"]
    other = Run(dict(store), config({"mlflow": "models:/shop@champion"}))
    assert other.versions(4, 5) == ["1", "1"]


def test_another_alias_of_the_same_version_is_no_change() -> None:
    store: dict[bytes, bytes] = {}
    run = Run(store)
    run.deploy(4, 0)
    run.versions(0, 1)
    run.snapshot()
    again = Run(store, config({"mlflow": "models:/bank@challenger"}))
    assert again.control.find_wanted(deployment(4, 1)) is None
    assert again.control.find_wanted(deployment(5, 1)) is not None
    assert again.versions(2, 3) == ["4", "4"]


def test_a_worker_never_asks_the_registry_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `check` makes the model of the configuration, the registry is asked; a worker's path never gets there."""

    def ask(*_: Any) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr("attributary_agents.models.versions.load_present", ask)
    monkeypatch.setattr("attributary_agents.models.from_mlflow.registry.Registry.version_of", ask)
    with pytest.raises(AssertionError):
        configured_version(config().models["m"])
    run = Run({})
    run.deploy(4, 0)
    run.versions(0)
    run.snapshot()
    assert Run(run.store).versions(1) == ["4"]


def test_what_is_built_has_the_folder_and_no_registry() -> None:
    job = Job.of(config(), Deployment("m", "4", {"mlflow": "models:/bank/4", "sha256": "4" * 64}))
    assert job.folder is None
    assert job.registered == {"bank"}

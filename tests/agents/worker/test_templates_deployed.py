"""New versions of models of templates: of one id each, also while it rests or before it is there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.stand_ins import CONTRARY_FACTORY, FACTORY, MODELS, TOPIC, header
from tests.delivery.remains import Log, Storing, stored_models

GOOD = b'{"x": {"a": 0.5, "b": 1}, "y": true}'


def config(**template: Any) -> Config:
    model = {"factory": FACTORY, "alpha": 0.1, "idle": "5s", "change": {"window": 20, "threshold": 0.0}, **template}
    control = {"allowed": ["river.", FACTORY, CONTRARY_FACTORY]}
    return parse_config({"kafka": {"partitions": 1}, "models": {"store-*": model}, "control": control})


class Owner:
    """A partition of observations and one of deployments, with the table that they are stored in."""

    def __init__(self, chosen: Config) -> None:
        self.table: dict[bytes, bytes] = {}
        self.partition = Partition(TOPIC, 0, chosen, self.table.get)
        self.control = PartitionControl(MODELS, self.partition, self.table.get)
        self.storing = Storing(self.partition, self.table.__setitem__)
        self.log = Log()

    def observe(self, offset: int, key: bytes, seconds: float) -> None:
        self.log.send(self.partition.handle(Record(TOPIC, 0, offset, round(1000 * seconds), key, GOOD)))

    def deploy(self, offset: int, key: bytes, factory: str = CONTRARY_FACTORY) -> list[Outgoing]:
        value = json.dumps({"version": f"v{offset}", "factory": factory}).encode()
        outcome = self.control.take(Record(MODELS, 0, offset, offset, key, value), -1)
        self.table.update(outcome.writes)
        return outcome.outgoing


def reasons(sent: list[Outgoing]) -> list[tuple[str, str]]:
    return [(header(one, "attributary-dlq-reason"), header(one, "attributary-dlq-message")) for one in sent]


@pytest.mark.parametrize("rests", [False, True])
def test_a_version_of_a_model_that_rests_takes_over_at_the_same_observation(rests: bool) -> None:
    owner = Owner(config())
    for n in range(40):
        owner.observe(n, b"store-1" if n % 2 else b"store-2", n / 10)
    owner.observe(40, b"store-3", 60)
    owner.storing.checkpoint()
    if rests:
        assert owner.partition.rest_idle().keys() == {"store-1", "store-2"}
    assert owner.deploy(0, b"store-1") == []
    for n in range(41, 90):
        owner.observe(n, b"store-1" if n % 2 else b"store-3", 60)
        if rests and n == 50:
            owner.storing.checkpoint()
            owner.partition.rest_idle()
    state = owner.partition.models["store-1"]
    assert (state.version, state.current.deployed) == ("v0", 0)
    owner.storing.checkpoint()
    found = owner.log.by_id, stored_models(owner.table, owner.partition.config)
    stayed = Owner(config())
    for n in range(90):
        if n == 41:
            stayed.deploy(0, b"store-1")
        stayed.observe(n, b"store-3" if n == 40 or (n > 40 and n % 2 == 0) else b"store-1" if n % 2 else b"store-2",
                       n / 10 if n < 40 else 60)  # fmt: skip
    stayed.storing.checkpoint()
    assert found == (stayed.log.by_id, stored_models(stayed.table, stayed.partition.config))


def test_a_deployment_is_of_one_model_that_is_there_or_can_be() -> None:
    owner = Owner(config(max_models=2))
    owner.observe(0, b"store-1", 0)
    assert reasons(owner.deploy(0, b"store-*")) == [
        (
            "unknown_model",
            "key: expected the id of one model: a deployment is of one, and not of all that a template matches, "
            "got 'store-*'",
        )
    ]
    assert [reason for reason, _ in reasons(owner.deploy(1, b"bank"))] == ["unknown_model"]
    assert owner.deploy(2, b"store-2") == [], "before its first observation"
    owner.observe(1, b"store-2", 0)
    assert owner.partition.models["store-2"].version == "v2"
    assert [reason for reason, _ in reasons(owner.deploy(3, b"store-3"))] == ["too_many_models"]
    assert owner.deploy(4, b"store-1") == []
    owner.observe(2, b"store-1", 0)
    assert owner.partition.models["store-1"].version == "v4"


def test_deployments_of_models_that_are_not_there_leave_nothing_in_memory() -> None:
    owner = Owner(config())
    for offset in range(5):
        owner.deploy(offset, b"store-%d" % offset)
    owner.partition.rest_idle()
    assert owner.partition.models._logs == {}
    owner.observe(0, b"store-3", 0)
    assert owner.partition.models["store-3"].version == "v3"

"""A worker's name in the group: whom it gives way to, and what the coordinator asks and is told."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupAuthorizationFailedError

from attributary_agents.errors import PreflightError
from attributary_agents.kafka import membership
from attributary_agents.kafka.membership import FENCED_INSTANCE_ID, UNKNOWN, NamedCoordinator, check_name, client_id
from tests.agents.stand_ins import config_of

UNKNOWN_MEMBER_ID = 25


def test_a_client_id_names_host_and_process() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()  # of what has ended there is no start
    assert client_id(ended.pid, "worker-0") == f"attributary-worker-0-{ended.pid}"
    assert client_id(ended.pid, "a host/with anything") == f"attributary-a_host_with_anything-{ended.pid}"
    assert re.fullmatch(rf".+-{os.getpid()}(\.\d+)?", client_id())


def test_a_worker_gives_way_to_one_on_another_host_and_to_one_that_is_still_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert refusal(monkeypatch, "w-0", client_id(os.getppid())), "of this host, and still there"
    assert refusal(monkeypatch, "w-0", client_id(os.getpid(), "another-host"))
    assert not refusal(monkeypatch, "w-0", client_id(ended.pid)), "of this host, and gone"
    assert not refusal(monkeypatch, "w-0", client_id()), "a container's first process, started again"
    assert not refusal(monkeypatch, "w-0", "rdkafka"), "nothing is known of it"
    assert not refusal(monkeypatch, "w-1", client_id(os.getppid())), "another name"
    assert not refusal(monkeypatch, "w-0-1", client_id(os.getppid())), "one that begins alike"
    assert not refusal(monkeypatch, "w-0", client_id(os.getppid()), name=None)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the start of a process is known on Linux alone")
def test_a_process_that_has_the_number_of_one_that_ended_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = client_id(os.getppid())
    assert refusal(monkeypatch, "w-0", there)
    assert not refusal(monkeypatch, "w-0", there.rpartition(".")[0] + ".1")
    assert refusal(monkeypatch, "w-0", there.rpartition(".")[0]), "of a release that does not tell its start"


def test_what_a_refused_worker_says_names_the_other_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, "w-0", "attributary-elsewhere-7")
    assert said.startswith("kafka.instance_id: 'w-0' is a member of the group attributary already: ")
    assert "attributary-elsewhere-7 at 10.0.0.7" in said
    assert "60 s later (kafka.session_timeout_s)" in said


def refusal(monkeypatch: pytest.MonkeyPatch, member: str, its_client: str, name: str | None = "w-0") -> str:
    """What a worker with the name says of a group with this member; empty where it starts."""

    async def describe(_groups: list[str]) -> list[Any]:
        found = (f"{member}-{uuid.uuid4()}", its_client, "/10.0.0.7", b"", b"")
        return [SimpleNamespace(groups=[(0, "attributary", "Stable", "consumer", "faust", [found])])]

    def with_admin(_kafka: Any, work: Callable[[Any], Any]) -> Any:
        return asyncio.run(work(SimpleNamespace(describe_consumer_groups=describe)))

    monkeypatch.setattr(membership, "with_admin", with_admin)
    config = config_of()
    kafka = config.kafka.model_copy(update={"instance_id": name})
    try:
        check_name(config.model_copy(update={"kafka": kafka}))
    except PreflightError as error:
        return str(error)
    return ""


class Asked:
    """A coordinator whose broker answers as the test says, and what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: tuple[int, str]) -> None:
        self.as_whom: list[str] = []
        self.topics: list[list[str]] = []
        self.rejoined_as: list[str] = []
        self.fenced = 0
        self.coordinator = coordinator = NamedCoordinator.__new__(NamedCoordinator)
        self._answers = list(answers)
        coordinator.group_id, coordinator._group_instance_id = "attributary", "w-0"
        coordinator.member_id, coordinator.generation = UNKNOWN, -1
        coordinator.coordinator_id, coordinator._retry_backoff_ms = 1, 1
        coordinator._coordinator_dead_fut = asyncio.get_running_loop().create_future()
        coordinator._session_timeout_ms = coordinator._rebalance_timeout_ms = 1000
        coordinator._assignors = [SimpleNamespace(name="faust", metadata=self._metadata)]
        coordinator._rejoin_needed_fut = asyncio.get_running_loop().create_future()
        coordinator._closing = asyncio.get_running_loop().create_future()
        coordinator._send_req = self._answer
        coordinator.on_fenced = self._fence

        async def rejoin(_self: Any, _subscription: Any) -> bool:
            self.rejoined_as.append(coordinator.member_id)
            return True

        monkeypatch.setattr(GroupCoordinator, "_do_rejoin_group", rejoin)

    def _metadata(self, topics: list[str]) -> Any:
        self.topics.append(subscription := list(topics))
        return SimpleNamespace(subscription=subscription, encode=lambda: ",".join(subscription).encode())

    async def _answer(self, request: Any) -> Any:
        self.as_whom.append(request._member_id)
        code, member_id = self._answers.pop(0)
        return SimpleNamespace(error_code=code, member_id=member_id)

    def _fence(self) -> None:
        self.fenced += 1
        self.coordinator._closing.set_result(None)

    async def rejoin(self) -> bool:
        joined: bool = await self.coordinator._do_rejoin_group(SimpleNamespace(topics=["a", "b", "c"]))
        return joined


def test_a_member_joins_twice_with_other_words_so_that_a_generation_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asked = Asked(monkeypatch, (0, "w-0-1"))
        assert await asked.rejoin()
        assert (asked.as_whom, asked.rejoined_as, asked.topics) == ([UNKNOWN], ["w-0-1"], [["c", "b", "a"]])
        assert await asked.rejoin()  # a member already: as upstream does
        assert (asked.as_whom, asked.rejoined_as) == ([UNKNOWN], ["w-0-1", "w-0-1"])

    asyncio.run(run())


def test_a_member_that_is_not_recognised_asks_as_whom_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asked = Asked(monkeypatch, (UNKNOWN_MEMBER_ID, ""), (0, "w-0-2"))
        asked.coordinator.member_id = "w-0-1"
        asked.coordinator.reset_generation()  # as after a heartbeat that was refused
        assert await asked.rejoin()
        assert (asked.as_whom, asked.rejoined_as) == (["w-0-1", UNKNOWN], ["w-0-2"]), "its session was over"

        asked = Asked(monkeypatch, (FENCED_INSTANCE_ID, ""))
        asked.coordinator.member_id = "w-0-1"
        asked.coordinator.reset_generation()
        assert not await asked.rejoin()
        assert (asked.as_whom, asked.rejoined_as, asked.fenced) == (["w-0-1"], [], 1), "another one has the name"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "coordinator"),
    [(14, 1), (15, None), (16, None), (27, 1)],
    ids=["loading", "not available", "not the coordinator", "rebalancing"],
)
def test_a_claim_that_fails_for_a_moment_is_made_again_before_joining(
    code: int, coordinator: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        asked = Asked(monkeypatch, (code, ""), (0, "w-0-1"))
        asked.coordinator.member_id = "w-0-1"
        asked.coordinator.reset_generation()
        assert not await asked.rejoin()
        assert asked.rejoined_as == [], "joining as unknown would be in the present generation"
        assert asked.coordinator.coordinator_id == coordinator
        assert await asked.rejoin()
        assert (asked.as_whom, asked.rejoined_as) == (["w-0-1", "w-0-1"], ["w-0-1"])

    asyncio.run(run())


def test_a_claim_that_is_refused_raises_and_does_not_join(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        asked = Asked(monkeypatch, (30, ""))
        with pytest.raises(GroupAuthorizationFailedError):
            await asked.rejoin()
        assert asked.rejoined_as == []

    asyncio.run(run())

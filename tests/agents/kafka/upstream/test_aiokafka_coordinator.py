"""What a coordinator of a member with a name asks, and what it is told."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupAuthorizationFailedError, UnknownError, for_code

from attributary_agents.kafka.upstream.aiokafka_coordinator import FENCED_INSTANCE_ID, UNKNOWN, NamedCoordinator

UNKNOWN_MEMBER_ID = 25


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


def test_upstream_does_not_know_the_error_of_a_name_that_has_been_taken() -> None:
    assert for_code(FENCED_INSTANCE_ID) is UnknownError

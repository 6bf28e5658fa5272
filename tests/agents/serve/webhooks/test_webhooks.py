"""What is committed, sent and counted when a partition is taken, lost, handed over."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httpx
import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.events.group import GroupFollower
from attributary_agents.serve.webhooks import target as target_module
from attributary_agents.serve.webhooks import webhooks as webhooks_module
from attributary_agents.serve.webhooks.remembered import Remembered
from attributary_agents.serve.webhooks.webhooks import Webhooks
from tests.agents.serve.webhooks.made import record

QUEUE = 60
MODEL = {"model": {"class": "river.linear_model.LogisticRegression"}, "features": {"a": "number"}}


class Group:
    """Stands in for a group: notes what is committed, and refuses where it is told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self.answers_after_s = 0.0
        self.committed: list[tuple[int, int, str]] = []
        self.sent_before: list[int] = []
        self.receiver: list[httpx.Request] = []

    async def take(self, partition: int, offset: int, note: str) -> bool:
        self.sent_before.append(len(self.receiver))
        await asyncio.sleep(0.01)  # time enough to send too early
        if not self.refuses:
            self.committed.append((partition, offset, note))
        return not self.refuses

    def has(self, partition: int) -> bool:
        return not self.refuses

    async def answer(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(self.answers_after_s)
        self.receiver.append(request)
        return httpx.Response(404 if "broken" in str(request.url) else 200)

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(request.url.path[1:], request.headers["idempotency-key"]) for request in self.receiver]


def webhooks(group: Group, **targets: list[str]) -> Webhooks:
    serve = {"webhooks": {name: {"url": f"http://x/{name}", "events": events} for name, events in targets.items()}}
    config = parse_config({"models": {"bank": MODEL}, "serve": serve})
    return Webhooks(config, transport=httpx.MockTransport(group.answer), first_s=0.001)


async def take(hooks: Webhooks, group: Group, *batches: list[Any]) -> None:
    """Let batches come, wait until all is sent, and commit what has become of it."""
    senders = [asyncio.create_task(target.run()) for target in hooks._targets.values()]
    for batch in batches:
        await hooks._take(cast(GroupFollower, group), batch)
    while not all(target.is_idle for target in hooks._targets.values()):
        await asyncio.sleep(0.001)
    await hooks._tell(cast(GroupFollower, group))
    for sender in senders:
        sender.cancel()


def test_an_event_is_committed_before_it_is_sent_and_its_end_afterwards() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 5, "")
        await take(hooks, group, [record(5), record(6, "importance_shift")])
        assert [(partition, offset) for partition, offset, _ in group.committed] == [(0, 7), (0, 7)]
        assert [dict(Remembered(note).open) for *_, note in group.committed] == [{"ops": 1}, {}]
        assert group.sent_before == [0, 1]
        assert group.told == [("ops", "bank:obs:0:5:1")]

    asyncio.run(run())


def test_each_address_is_told_of_what_it_asks_for() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, a=["alarm"], c=["change"], s=["shift"], all=["alarm", "change", "shift"])
        hooks._given(0, 0, "")
        kinds = ["alarm", "explanation", "not_confirmed", "importance_shift", "loss_shift", "recovered"]
        await take(hooks, group, [record(n, kind) for n, kind in enumerate(kinds)])
        told = {
            name: [int(key.split(":")[3]) for to, key in group.told if to == name] for name in ("a", "c", "s", "all")
        }
        assert told == {"a": [0, 2], "c": [1, 4, 5], "s": [3], "all": [0, 1, 2, 3, 4, 5]}

    asyncio.run(run())


def test_an_event_that_the_topic_has_twice_is_sent_once_also_by_the_next_process() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 0, "")
        twice = [record(0), record(1, event_id="again"), record(2, event_id="again")]
        await take(hooks, group, twice)
        assert [key for _, key in group.told] == ["bank:obs:0:0:1", "again"]
        following = webhooks(group, ops=["change"])
        following._given(0, 3, group.committed[-1][2])
        await take(following, group, [record(3, event_id="again"), record(4)])
        assert [key for _, key in group.told][2:] == ["bank:obs:0:4:1"]

    asyncio.run(run())


def test_what_is_not_known_to_be_committed_is_not_sent_and_is_new_when_it_comes_again() -> None:
    async def run() -> None:
        group = Group(refuses=True)
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 0, "")
        await take(hooks, group, [record(0)])
        assert group.told == []
        group.refuses = False
        await take(hooks, group, [record(0)])
        assert group.told == [("ops", "bank:obs:0:0:1")]
        assert dict(Remembered(group.committed[-1][2]).open) == {}

    asyncio.run(run())


def test_an_address_that_refuses_holds_up_no_other() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, broken=["change"], ops=["change"])
        hooks._given(0, 0, "")
        await take(hooks, group, [record(0), record(1)])
        assert [(one.name, one.sent, one.failed, one.last_failure) for one in hooks.counts()] == [
            ("broken", 0, 2, "bank:obs:0:1:1: it answers 404"),
            ("ops", 2, 0, None),
        ]

    asyncio.run(run())


def test_a_backlog_waits_for_room_behind_an_address_that_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "QUEUE", QUEUE)

    async def run() -> None:
        group = Group()
        group.answers_after_s = 0.002
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 0, "")
        n = 3 * QUEUE
        await take(hooks, group, *([record(at) for at in range(begin, begin + 20)] for begin in range(0, n, 20)))
        (count,) = hooks.counts()
        assert (count.sent, count.failed) == (n, 0)

    asyncio.run(run())


def test_a_backlog_does_not_wait_for_an_address_that_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks_module, "ROOM_WITHIN_S", 0.0)
    monkeypatch.setattr(target_module, "QUEUE", QUEUE)

    async def run() -> None:
        group = Group()
        hooks = webhooks(group, broken=["change"])
        hooks._given(0, 0, "")
        for begin in range(0, QUEUE + 40, 20):  # nobody sends meanwhile
            await hooks._take(cast(GroupFollower, group), [record(at) for at in range(begin, begin + 20)])
        assert hooks.counts()[0].failed == 40
        assert group.committed[-1][1] == QUEUE + 40

    asyncio.run(run())


def test_what_a_server_that_has_ended_had_under_way_is_counted_once() -> None:
    async def run() -> None:
        group = Group()
        note = Remembered().note("another", {"ops": 2, "removed": 4})
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 9, note)
        (count,) = hooks.counts()
        assert (count.sent, count.failed) == (0, 2)
        assert count.last_failure is not None
        assert count.last_failure.startswith("2 events: taken by a server that has ended")
        await take(hooks, group)
        assert [(partition, offset) for partition, offset, _ in group.committed] == [(0, 9)], "nothing is read over"
        following = webhooks(group, ops=["change"])
        following._given(0, 9, group.committed[-1][2])
        assert following.counts()[0].failed == 0

    asyncio.run(run())


def test_a_server_that_is_given_a_partition_again_has_lost_nothing() -> None:
    async def run() -> None:
        group = Group()
        hooks = webhooks(group, ops=["change"])
        hooks._given(0, 0, "")
        await hooks._take(cast(GroupFollower, group), [record(0)])
        hooks._given(0, 1, group.committed[-1][2])
        assert hooks.counts()[0].failed == 0

    asyncio.run(run())

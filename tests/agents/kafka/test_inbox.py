"""What a poll brings as one message: folded, bounded per partition and in all, and polled again where there is room."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.utils import DefaultSchedulingStrategy
from faust.types import TP

from attributary_agents.app import create_app
from attributary_agents.config.reading import parse_config
from attributary_agents.kafka import inbox as inbox_module
from attributary_agents.kafka.inbox import FULL, FULL_BYTES, Fetch, Intake, message_of
from attributary_agents.kafka.upstream.faust_consumer import ExactConsumer
from tests.agents.stand_ins import FACTORY, TOPIC

ONE, TWO, OTHER = TP(TOPIC, 0), TP(TOPIC, 1), TP("models", 0)


def records(n: int, first: int = 0, value: bytes = b"{}") -> list[Any]:
    return [
        SimpleNamespace(
            topic="models",
            partition=0,
            offset=first + i,
            timestamp=1000 * i,
            timestamp_type=0,
            key=b"m",
            value=value,
            headers=(),
            checksum=None,
            serialized_key_size=0,
            serialized_value_size=0,
        )
        for i in range(n)
    ]


def test_only_records_of_the_topic_are_folded_and_in_their_order() -> None:
    one, other = records(3), records(2)
    folded = Intake(TOPIC).fold({ONE: one, OTHER: other, TWO: []})
    (fetch,) = folded[ONE]
    assert fetch.records is one
    assert folded[OTHER] is other
    assert folded[TWO] == [], "no message without a record"


def test_the_message_is_named_by_its_last_offset_and_carries_the_generation() -> None:
    message = message_of(ONE, Fetch(records(3, first=7)), 5)
    assert (message.offset, message.generation_id, message.tp, message.timestamp) == (9, 5, ONE, 2.0)
    assert (message.topic, message.partition, message.key) == (TOPIC, 0, None)


def test_a_partition_whose_inbox_is_full_is_not_polled_until_one_of_its_records_is_handled() -> None:
    intake = Intake(TOPIC)
    one, two = intake.open(ONE), intake.open(TWO)
    assert intake.with_room([ONE, TWO, OTHER]) == {ONE, TWO, OTHER}
    one.put(records(FULL - 1))
    two.put(records(FULL))
    assert intake.with_room([ONE, TWO, OTHER]) == {ONE, OTHER}
    assert two.pop().offset == 0
    assert intake.with_room([ONE, TWO, OTHER]) == {ONE, TWO, OTHER}


def test_large_records_fill_an_inbox_by_their_bytes() -> None:
    intake = Intake(TOPIC)
    one = intake.open(ONE)
    one.put(records(5, value=bytes(FULL_BYTES // 4)))
    assert intake.with_room([ONE, TWO]) == {TWO}
    before = one.n_bytes
    one.pop()
    assert before - one.n_bytes > FULL_BYTES // 4
    one.pop()
    assert intake.with_room([ONE, TWO]) == {ONE, TWO}
    one.clear()
    assert (len(one), one.n_bytes) == (0, 0)


@pytest.mark.parametrize("bound", ["ALL_FULL", "ALL_FULL_BYTES"])
def test_where_much_waits_of_all_partitions_those_are_polled_of_which_nothing_does(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    intake = Intake(TOPIC)
    partitions = [TP(TOPIC, n) for n in range(9)]
    for tp in partitions[:-1]:
        intake.open(tp).put(records(10, value=bytes(1000)))
    intake.open(partitions[-1])
    assert intake.with_room(partitions) == set(partitions)
    monkeypatch.setattr(inbox_module, bound, 80 if bound == "ALL_FULL" else 80_000)
    assert intake.with_room(partitions) == {partitions[-1]}
    monkeypatch.setattr(inbox_module, bound, 40 if bound == "ALL_FULL" else 40_000)
    assert intake.with_room(partitions) == set(), "of many partitions each would bring a poll more"


def test_a_new_owner_begins_with_an_empty_inbox() -> None:
    intake = Intake(TOPIC)
    intake.open(ONE).put(records(FULL))
    assert intake.with_room([ONE]) == set()
    intake.open(ONE)
    assert intake.with_room([ONE]) == {ONE}


class _Thread:
    """Stands in for the client's thread: notes what is polled, and for how long at most."""

    def __init__(self) -> None:
        self.polls: list[tuple[frozenset[TP], float]] = []

    async def getmany(self, partitions: frozenset[TP], timeout: float) -> dict[TP, list[Any]]:
        self.polls.append((partitions, timeout))
        return {tp: records(2) for tp in partitions}


def consumer(intake: Intake) -> tuple[Any, _Thread]:
    made: Any = ExactConsumer.__new__(ExactConsumer)
    made.app = SimpleNamespace(intake=intake, consumer_generation_id=3)
    made._thread = thread = _Thread()
    return made, thread


def test_a_poll_leaves_full_partitions_out_and_is_short_then() -> None:
    intake = Intake(TOPIC)
    made, thread = consumer(intake)

    async def poll() -> Any:
        return await made._getmany({ONE, TWO, OTHER}, 1.0)

    found = asyncio.run(poll())
    assert [type(found[tp][0]).__name__ for tp in (ONE, TWO, OTHER)] == ["Fetch", "Fetch", "SimpleNamespace"]
    assert made._to_message(ONE, found[ONE][0]).generation_id == 3
    intake.open(TWO).put(records(FULL))
    assert set(asyncio.run(poll())) == {ONE, OTHER}
    (all_of_them, long), (with_room, short) = thread.polls
    assert (all_of_them, with_room) == ({ONE, TWO, OTHER}, {ONE, OTHER})
    assert short < long == 1.0


def test_where_all_are_full_nothing_is_polled_until_one_has_been_handled() -> None:
    intake = Intake(TOPIC)
    made, thread = consumer(intake)
    inbox = intake.open(ONE)
    inbox.put(records(FULL))

    async def run() -> None:
        polling = asyncio.ensure_future(made._getmany({ONE}, 3600.0))
        await asyncio.sleep(0)
        assert not polling.done()
        inbox.pop()
        inbox.note_room()
        assert await polling == {}
        assert thread.polls == []
        assert set(await made._getmany({ONE}, 1.0)) == {ONE}

    asyncio.run(run())


def test_the_application_folds_the_observations_and_acknowledges_nothing_to_faust() -> None:
    config = parse_config({"models": {"m": {"factory": FACTORY}}})
    app = create_app(config).app
    assert app.intake.topic == config.kafka.topics.observations
    assert app._new_transport().Consumer is ExactConsumer
    topics = [agent.channel for agent in app.agents.values()]
    assert {topic.topics[0] for topic in topics} == {config.kafka.topics.observations, config.kafka.topics.models}
    assert not any(topic.acks for topic in topics), "Faust would keep a gap between any two fetches"


def test_upstream_hands_a_fetch_on_as_it_is_and_subscribes_topics_without_acknowledgements() -> None:
    config = parse_config({"models": {"m": {"factory": FACTORY}}})
    app = create_app(config).app
    found = [agent.channel for agent in app.agents.values()]
    (topic,) = [one for one in found if config.kafka.topics.observations in one.topics]

    async def run() -> None:
        fetch = Fetch(records(3))
        event = await topic.decode(message_of(TP(topic.topics[0], 0), fetch, 1), propagate=True)
        assert event.message.value is fetch
        app.topics.add(topic)
        assert topic.topics[0] in await app.topics._update_indices()
        assert not app.topics.acks_enabled_for(topic.topics[0])

    asyncio.run(run())


def test_upstream_reads_nothing_of_a_fetch_but_what_its_message_says() -> None:
    intake = Intake(TOPIC)
    made, _ = consumer(intake)
    made.app.monitor = SimpleNamespace(track_tp_end_offset=lambda *_: None)
    made.flow_active = True
    made._stopped = made._shutdown = made._crashed = SimpleNamespace(is_set=lambda: False)
    made.scheduler, made._buffered_partitions, made.highwater = DefaultSchedulingStrategy(), set(), lambda _tp: 9
    fetched = intake.fold({ONE: records(3), TWO: records(1), OTHER: records(2)})

    async def _wait_next_records(_timeout: float) -> Any:
        return fetched, {ONE, TWO, OTHER}

    made._wait_next_records = _wait_next_records

    async def run() -> list[Any]:
        return [(tp, message.offset, type(message.value)) async for tp, message in made.getmany(1.0)]

    found = asyncio.run(run())
    assert sorted(found, key=repr) == sorted(
        [(ONE, 2, Fetch), (TWO, 0, Fetch), (OTHER, 0, bytes), (OTHER, 1, bytes)], key=repr
    )

"""Reading topics from their end backwards, and going on while brokers are away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import NodeNotReadyError
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.kafka import readers
from attributary_agents.kafka.readers import TopicReader


class FakeClient:
    """Serves the given offsets of each partition, a few at a time, as aiokafka's consumer does."""

    def __init__(self, offsets: dict[int, Iterable[int]], *, begins: dict[int, int], ends: dict[int, int]) -> None:
        self.places = [TopicPartition("t", number) for number in offsets]
        self.there = {TopicPartition("t", number): sorted(there) for number, there in offsets.items()}
        self.at = {place: begins[place.partition] for place in self.places}
        self.begins, self.ends = begins, ends
        self.read: list[tuple[int, int]] = []
        self.is_away = False

    def assignment(self) -> list[TopicPartition]:
        return self.places

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self.is_away:
            raise NodeNotReadyError
        return {place: self.ends[place.partition] for place in places}

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: self.begins[place.partition] for place in places}

    async def position(self, place: TopicPartition) -> int:
        return self.at[place]

    def seek(self, place: TopicPartition, offset: int) -> None:
        self.at[place] = offset

    async def getmany(self, *places: TopicPartition, timeout_ms: int, max_records: int | None) -> dict[Any, list[Any]]:
        await asyncio.sleep(0)
        found = {}
        for place in places or self.places:
            offsets = [n for n in self.there[place] if n >= self.at[place]][:7]
            end = self.ends[place.partition]
            self.at[place] = max(self.at[place], offsets[-1] + 1 if len(offsets) == 7 else end)
            self.read += [(place.partition, n) for n in offsets]
            if offsets:
                found[place] = [
                    SimpleNamespace(topic="t", partition=place.partition, offset=n, headers=()) for n in offsets
                ]
        return found


def client_of(n: dict[int, int]) -> FakeClient:
    return FakeClient({number: range(size) for number, size in n.items()}, begins=dict.fromkeys(n, 0), ends=n)


def blocks_of(client: FakeClient, step: int, most: int, **options: Any) -> list[list[tuple[int, int]]]:
    async def run() -> list[list[tuple[int, int]]]:
        async with aclosing(TopicReader(client).backwards(step, most, **options)) as blocks:
            return [[(record.partition, record.offset) for record in records] async for records in blocks]

    return asyncio.run(run())


PARTITIONS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 60), st.sets(st.integers(0, 99))), min_size=1, max_size=3
)


@given(PARTITIONS, st.integers(1, 20), st.integers(1, 120))
def test_backwards_gives_each_record_at_the_end_once_and_older_ones_later(
    partitions: list[tuple[int, int, set[int]]], step: int, most: int
) -> None:
    begins = {number: begin for number, (begin, _, _) in enumerate(partitions)}
    ends = {number: begin + length for number, (begin, length, _) in enumerate(partitions)}
    there = {
        number: {n for n in range(begins[number], ends[number]) if n not in gone}
        for number, (_, _, gone) in enumerate(partitions)
    }
    client = FakeClient(there, begins=begins, ends=ends)
    blocks = blocks_of(client, step, most)
    expected = [(number, n) for number in there for n in there[number] if n >= ends[number] - most]
    assert sorted(one for block in blocks for one in block) == sorted(expected)
    for number in there:
        seen = [[n for place, n in block if place == number] for block in blocks]
        assert [n for block in reversed(seen) for n in block] == sorted(n for block in seen for n in block)
    assert client.at == {place: ends[place.partition] for place in client.places}, "what is to come is read from there"


def test_backwards_reads_a_long_topic_no_further_than_it_is_asked_to() -> None:
    client = client_of({0: 100_000, 1: 100_000})

    async def run() -> None:
        async with aclosing(TopicReader(client).backwards(10, 100_000)) as blocks:
            async for _ in blocks:
                break

    asyncio.run(run())
    assert len(client.read) < 50
    assert min(n for _, n in client.read) == 99_990


def test_backwards_leaves_out_the_partitions_that_are_not_wanted_any_more() -> None:
    wanted = {0, 1}
    client = client_of({0: 1000, 1: 1000})

    async def run() -> None:
        async with aclosing(TopicReader(client).backwards(10, 1000, lambda n: n in wanted)) as blocks:
            async for _ in blocks:
                wanted.discard(0)

    asyncio.run(run())
    assert min(n for place, n in client.read if place == 0) == 990
    assert min(n for place, n in client.read if place == 1) == 0


def test_going_on_tells_once_that_brokers_are_away_and_once_that_they_are_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readers, "ASKED_AFTER_S", 0.001)
    client = client_of({0: 0})
    client.is_away = True
    told: list[bool] = []

    def away(is_away: bool) -> None:
        told.append(is_away)
        client.is_away = False
        if not is_away:
            client.there[client.places[0]], client.ends = [0], {0: 1}

    async def run() -> int:
        async for batch in TopicReader(client).to_come(away):
            return int(batch[0].offset)
        raise AssertionError("it goes on for ever")

    assert asyncio.run(asyncio.wait_for(run(), 60)) == 0
    assert told == [True, False]

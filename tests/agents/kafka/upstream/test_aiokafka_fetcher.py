"""What is fetched and handed out at a time, and the offsets without a record that are noted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.consumer.fetcher import Fetcher
from support.raw_names import builder

from attributary_agents.kafka.upstream import aiokafka_fetcher
from attributary_agents.kafka.upstream.aiokafka_fetcher import BESIDE_MS, BoundedResult, PromptFetcher
from attributary_agents.kafka.upstream.aiokafka_records import BoundedRecords


def asked(buffered: set[TopicPartition], kind: type[Fetcher] = PromptFetcher) -> dict[TopicPartition, int]:
    """What a fetcher asks the only broker for, by partition: the milliseconds that the broker may wait."""
    partitions = [TopicPartition("observations", number) for number in range(2)]
    prompt = object.__new__(kind)
    vars(prompt).update(
        _fetch_max_wait_ms=1500,
        _fetch_min_bytes=1,
        _fetch_max_bytes=10_000,
        _max_partition_fetch_bytes=1000,
        _isolation_level=1,
        _client_rack=None,
        _fetcher_timeout=1.0,
        _preferred_read_replica={},
        _in_flight=set(),
        _client=SimpleNamespace(cluster=SimpleNamespace(leader_for_partition=lambda _: 0)),
        _records={tp: SimpleNamespace(calculate_backoff=lambda: 0) for tp in buffered},
    )
    state = SimpleNamespace(has_valid_position=True, paused=False, position=7)
    assignment = SimpleNamespace(tps=partitions, state_value=lambda _: state)
    requests, *_ = prompt._get_actions_per_node(assignment)
    ((_, request),) = requests
    assert prompt._fetch_max_wait_ms == 1500
    return {
        TopicPartition(topic, partition): request._max_wait_ms
        for topic, found in request._topics
        for partition, *_ in found
    }


def test_a_fetch_beside_a_backlog_is_not_kept_back_for_long() -> None:
    backlog, idle = TopicPartition("observations", 0), TopicPartition("observations", 1)
    assert asked({backlog}) == {idle: BESIDE_MS}
    assert asked(set()) == {backlog: 1500, idle: 1500}


def test_upstream_keeps_a_fetch_beside_a_backlog_back() -> None:
    assert asked({TopicPartition("observations", 0)}, Fetcher) == {TopicPartition("observations", 1): 1500}


class Place:
    """The only partition of an assignment, and where it is read."""

    active, paused, position = True, False, 0

    def state_value(self, _tp: TopicPartition) -> Place:
        return self

    def consumed_to(self, offset: int) -> None:
        self.position = offset


@pytest.mark.parametrize(("most", "expected"), [(None, [3, 3, 3, 1]), (2, [2] * 5), (5, [3, 3, 3, 1])])
def test_a_poll_ends_after_so_many_bytes_and_the_next_goes_on_there(
    most: int | None, expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiokafka_fetcher, "POLL_BYTES", 250)
    data = BoundedRecords(bytes(builder([(b"k", b"%0100d" % n, []) for n in range(10)], 1).build()))
    tp, place = TopicPartition("t", 0), Place()
    records = fetcher.PartitionRecords(tp, data, None, 0, None, None, True, fetcher.READ_COMMITTED)
    result = BoundedResult(tp, assignment=place, partition_records=records, backoff=0)
    polls, positions = [], []
    while result.has_more():
        polls.append([int(one.value) for one in result.getall(most)])
        positions.append(place.position)
    assert [len(poll) for poll in polls if poll] == expected
    assert [n for poll in polls for n in poll] == list(range(10))
    assert [position for poll, position in zip(polls, positions, strict=True) if poll] == [
        poll[-1] + 1 for poll in polls if poll
    ]
    assert fetcher.FetchResult is BoundedResult

"""What a scrape sees of a worker: durations, what is not stored yet, and partitions while they are the worker's."""

from __future__ import annotations

import time

import pytest

from attributary_agents.state.records import StateRecords
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.view import CHECKPOINT_BUCKETS_S, Durations, PartitionView, WorkerView
from tests.agents.stand_ins import config_of


def partition_view(number: int = 0) -> PartitionView:
    return PartitionView(Partition("t", number, config_of(), lambda _key: None))


def test_durations_fall_into_their_buckets() -> None:
    durations = Durations((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 1.0, 7.0):
        durations.observe(seconds)
    assert durations.counts == [2, 2, 1]
    assert durations.sum == pytest.approx(8.65)


def test_the_view_of_a_worker_shows_the_partitions_that_the_worker_has_now() -> None:
    owned: dict[int, PartitionView] = {}
    view = WorkerView(owned, records := StateRecords())
    owned[3] = own = partition_view(3)
    assert dict(view.partitions) == {3: own}
    del owned[3]
    assert dict(view.partitions) == {}
    assert view.records is records


def test_a_checkpoint_is_counted_with_its_time() -> None:
    view, before = WorkerView({}), time.time()
    assert view.last_checkpoint_s is None
    view.record_checkpoint(0.02)
    assert view.last_checkpoint_s is not None
    assert before <= view.last_checkpoint_s <= time.time()
    assert view.checkpoint_times.counts[CHECKPOINT_BUCKETS_S.index(0.025)] == 1

"""Each record of the origins is taken once, in their order, whatever is killed, frozen and woken."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from support.kafka import read_all
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.state.deduplication import Origins
from attributary_topics.origins import ORIGIN_HEADER, Origin, decode_origin, find_header
from tests.integration.sources.process import MapperProcess
from tests.integration.sources.rentals import Made, made

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 20_000


def mapped(data: Made) -> list[tuple[int, bytes, int, Origin]]:
    """What is on our topic: partition, model id, Kafka's timestamp, origin; in its order."""
    found = []
    for record in read_all(data.bootstrap, data.config.kafka.topics.observations):
        header = find_header(record.headers, ORIGIN_HEADER)
        assert header is not None
        found.append((record.partition, record.key, record.timestamp, decode_origin(header)))
    return found


def origins(data: Made) -> set[tuple[str, int, int]]:
    topics = [f"{data.config.kafka.topic_prefix}-{name}" for name in data.n]
    return {(topic, record.partition, record.offset) for topic in topics for record in read_all(data.bootstrap, topic)}


def check_exact(data: Made) -> Counter[str]:
    """Assert that what is on our topic is taken once for each origin record, in the origin's order; return counts."""
    judges: defaultdict[int, Origins] = defaultdict(Origins)
    taken: list[tuple[str, int, int]] = []
    last: dict[tuple[int, str, int], int] = {}
    behind, high = 0, dict[int, int]()
    for partition, _, timestamp, origin in mapped(data):
        if judges[partition].takes(origin) != "accepted":
            continue
        taken.append((origin.topic, origin.partition, origin.offset))
        place = (partition, origin.topic, origin.partition)
        assert last.get(place, -1) < origin.offset, "out of order"
        last[place] = origin.offset
        behind += timestamp < high.get(partition, 0) - 3_600_000
        high[partition] = max(high.get(partition, 0), timestamp)
    assert len(taken) == len(set(taken)), "taken twice"
    assert set(taken) == origins(data)
    counts = sum((judge.counts for judge in judges.values()), Counter[str]())
    counts["behind"] = behind
    return counts


def test_a_backlog_is_merged_by_time(kafka_broker: Broker, tmp_path: Path) -> None:
    data = made(kafka_broker.bootstrap, N)
    mapper = MapperProcess(data.raw, tmp_path, once=True)
    assert mapper.child.wait(240) == 0, mapper.said
    counts = check_exact(data)
    assert counts == Counter(accepted=sum(data.n.values())), "nothing repeated, nothing more than an hour behind"
    times = defaultdict(list)
    for partition, _, timestamp, _ in mapped(data):
        times[partition].append(timestamp)
    assert all(of_one == sorted(of_one) for of_one in times.values())


def test_mappers_and_workers_that_are_killed_frozen_and_woken_take_each_record_once(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    data = made(kafka_broker.bootstrap, 3 * N // 2)
    total = sum(data.n.values())
    rng = random.Random(7)
    worker, second = WorkerProcess(data.raw, tmp_path), WorkerProcess(data.raw, tmp_path)
    worker.start()
    mapper = MapperProcess(data.raw, tmp_path)
    for round_ in range(5):
        mapper.wait_until_it_maps()
        time.sleep(rng.uniform(0.2, 0.9))
        if round_ % 2:
            # Frozen, another one takes over; woken, it sends and commits as if nothing had been.
            mapper.freeze()
            other = MapperProcess(data.raw, tmp_path)
            other.wait_until_it_maps()
            time.sleep(0.5)
            mapper.wake()
            time.sleep(1.5)
            mapper.kill()
            mapper = other
        else:
            mapper.kill()
            mapper = MapperProcess(data.raw, tmp_path)
        if round_ == 1:
            second.start()  # a rebalance
        if round_ in (0, 2):
            worker.kill()
            worker.start()
    wait_for("all is taken", lambda: _accepted(worker) + _accepted(second) == total, 240)
    mapper.wait_until_it_maps()
    assert mapper.stop() == 0, mapper.said
    assert worker.stop() == 0
    assert second.stop() == 0
    counts = check_exact(data)
    assert counts["repeat"] > 0, "nothing was repeated: this proves little"
    assert counts["accepted"] == total
    found = check_equal(data.bootstrap, data.config)
    seen = sum(state.n_observations for one in found.partitions.values() for state in one.models.values())
    assert seen == total


def _accepted(worker: WorkerProcess) -> int:
    series = worker.metrics().get("attributary_origin_records_total", {})
    return int(sum(value for labels, value in series.items() if ("outcome", "accepted") in labels))

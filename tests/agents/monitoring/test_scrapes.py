"""A scrape beside a worker that works: what it waits for, what it gives meanwhile, and what has gone from under it."""

from __future__ import annotations

import threading
import time

import pytest

from attributary_agents.kafka.brokers import AWAY_AFTER_S, BrokerWatch
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.worker.view import END_KNOWN_S, WorkerView
from tests.agents.monitoring.views import config_of, filled, samples, scraped, value
from tests.agents.stand_ins import TOPIC


def test_a_scrape_during_a_stuck_step_is_given_the_previous_reading() -> None:
    collector, view = scraped(config_of("m"), {0: ["m"]}, n=3)
    before = samples(collector)
    view.partitions[0].partition.counters.consumed += 1000
    with view.lock:
        assert samples(collector) == before
    assert value(samples(collector), "records_consumed_total", topic=TOPIC, partition="0") == 1004


def test_a_scrape_waits_for_a_step_that_ends() -> None:
    collector, view = scraped(config_of("m"), {0: ["m"]}, n=3)
    read: list[float] = []
    view.lock.acquire()
    scrape = threading.Thread(
        target=lambda: read.append(value(samples(collector), "records_consumed_total", topic=TOPIC, partition="0"))
    )
    scrape.start()
    view.partitions[0].partition.counters.consumed = 7
    view.lock.release()
    scrape.join()
    assert read == [7]


class Recorded:
    """A lock that remembers what was done with it, and is not to be had at the n-th time."""

    def __init__(self, refused_at: int | None = None) -> None:
        self.calls: list[str] = []
        self._refused_at = refused_at

    def acquire(self, timeout: float) -> bool:
        assert timeout == 1.0
        self.calls.append("take")
        return self.calls.count("take") != self._refused_at

    def release(self) -> None:
        self.calls.append("give")


def test_observations_have_their_turn_after_each_model() -> None:
    config = config_of("m", "n", "o")
    view = filled(config, {0: ["m", "n"], 1: ["o"]}, n=3)
    view.lock = lock = Recorded()  # type: ignore[assignment]
    list(AttributaryCollector(config, view).collect())
    assert lock.calls == ["take", "give"] * 4


def test_a_partition_that_is_lost_in_the_middle_of_a_scrape_takes_its_series_along() -> None:
    config = config_of("m", "n", "o")
    view = filled(config, {0: ["m", "n"], 1: ["o"]}, n=3)

    class Losing(Recorded):
        def release(self) -> None:
            super().release()
            view.partitions.pop(0, None)

    view.lock = Losing()  # type: ignore[assignment]
    found = samples(AttributaryCollector(config, view))
    models = {dict(labels).get("model_id") for _, labels in found} - {None}
    assert models == {"o"}


@pytest.mark.parametrize("refused_at", [1, 2, 4])
def test_a_step_that_lasts_in_the_middle_of_a_scrape_gives_the_previous_reading(refused_at: int) -> None:
    collector, view = scraped(config_of("m", "n", "o"), {0: ["m", "n"], 1: ["o"]}, n=3)
    before = samples(collector)
    view.partitions[0].partition.counters.consumed += 1000
    view.lock = lock = Recorded(refused_at)  # type: ignore[assignment]
    assert samples(collector) == before
    assert lock.calls == ["take", "give"] * (refused_at - 1) + ["take"], "never given back without having it"


def test_a_partition_that_is_lost_takes_its_series_along() -> None:
    collector, view = scraped(config_of("m", "n"), {0: ["m"], 1: ["n"]}, n=3)
    assert {dict(labels).get("partition") for _, labels in samples(collector)} == {None, "0", "1"}
    del view.partitions[0]
    left = samples(collector)
    assert {dict(labels).get("partition") for _, labels in left} == {None, "1"}
    assert {dict(labels).get("model_id") for _, labels in left} == {None, "n"}
    assert {labels: n for (name, labels), n in left.items() if name == "model_state_bytes"} == {
        (("model_id", "n"),): 1001
    }


def test_a_lag_is_absent_where_its_end_is_old() -> None:
    view = filled(config_of("m"), {0: ["m"]}, n=30)
    collector = AttributaryCollector(config_of("m"), view)
    lag = ("consumer_lag_records", (("partition", "0"), ("topic", TOPIC)))
    view.partitions[0].lag.note(7, time.monotonic() - END_KNOWN_S + 10)
    assert samples(collector)[lag] == 7
    view.partitions[0].lag.note(7, time.monotonic() - END_KNOWN_S - 1)
    assert lag not in samples(collector)


def test_whether_brokers_answer_is_seen_while_a_step_holds_the_lock() -> None:
    now = [0.0]
    view = WorkerView({}, brokers=BrokerWatch(lambda: now[0]))
    collector = AttributaryCollector(config_of("m"), view)
    assert ("broker_up", ()) not in samples(collector)
    view.brokers.fail("kafka:9092", "refused")
    now[0] = AWAY_AFTER_S
    with view.lock:
        found = samples(collector)
    assert found["broker_up", ()] == 0
    assert ("broker_last_answer_timestamp_seconds", ()) not in found
    view.brokers.answer("kafka:9092")
    found = samples(collector)
    assert found["broker_up", ()] == 1
    assert abs(found["broker_last_answer_timestamp_seconds", ()] - time.time()) < 60
    assert found["write_unacknowledged_seconds", ()] == 0
    view.brokers.writes.look({"credit.state[0]": now[0] - 12.5})
    with view.lock:
        assert samples(collector)["write_unacknowledged_seconds", ()] == 12.5

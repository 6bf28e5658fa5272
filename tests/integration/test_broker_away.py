"""A worker while its only broker is away, on Apache Kafka: during its life, and from its start on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import BrokerMissingError, KafkaBroker
from attributary_agents.kafka.topics import create_topics
from tests.integration.outages import Outage, Probe, outage, settings

pytestmark = [pytest.mark.long, pytest.mark.kafka]

STUCK_AFTER_S, WARN_AFTER_S, END_AFTER_S = 3.0, 8.0, 12.0
"""What a step may last here; the outage is longer than each."""


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that other tests do not need."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
    except BrokerMissingError as error:
        # Under CI a missing broker is a broken pipeline; elsewhere it is somebody without Java.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


@pytest.fixture(scope="module")
def seen(own_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Outage:
    """One outage, longer than any step may last, with observations pending."""
    limits = {
        "web": {"stuck_after_s": STUCK_AFTER_S},
        "watchdog": {"warn_after_s": WARN_AFTER_S, "end_after_s": END_AFTER_S},
    }
    return outage(own_broker, tmp_path_factory.mktemp("worker"), 2 * END_AFTER_S, **limits)


class TestAnOutageWithObservationsPending:
    def test_no_probe_ends_the_worker_and_nothing_else_does(self, seen: Outage) -> None:
        assert seen.lasted_s >= 2 * END_AFTER_S
        assert {answer.text for answer in seen.livez} == {"alive"}
        assert seen.exit_code == 0
        assert seen.missing == 0

    def test_it_says_that_it_is_not_ready_and_why(self, seen: Outage) -> None:
        later = [answer for answer in seen.readyz if answer.at - seen.readyz[0].at > 5]
        assert {answer.status for answer in later} == {503}
        assert all(answer.text.startswith("not ready: no broker answers (127.0.0.1:") for answer in later)

    def test_the_metrics_say_so_and_the_checkpoint_that_waits_is_no_stall(self, seen: Outage) -> None:
        assert seen.metrics["attributary_broker_up"][()] == 0
        assert seen.metrics["attributary_broker_last_answer_timestamp_seconds"][()] > 0
        assert seen.metrics["attributary_worker_stalls_total"][()] == 0
        assert seen.metrics["attributary_worker_step_seconds"][()] < WARN_AFTER_S
        assert max(seen.metrics["attributary_checkpoint_pending_seconds"].values()) > END_AFTER_S

    def test_the_log_has_a_line_at_the_beginning_and_one_at_the_end(self, seen: Outage) -> None:
        brokers = [line.split("kafka.brokers: ")[1] for line in seen.log if "kafka.brokers: " in line]
        first, *between, last = brokers
        assert first.startswith("no broker answers (127.0.0.1:")
        assert len(between) <= seen.lasted_s / 60
        assert last.startswith("a broker answers again, after ")
        outage_lines = seen.log[: next(i for i, line in enumerate(seen.log) if "answers again" in line)]
        assert not [line for line in outage_lines if " ERROR " in line]

    def test_it_tries_to_connect_at_its_leisure(self, seen: Outage) -> None:
        assert seen.attempts is not None
        assert seen.attempts / seen.lasted_s < 6, "two clients, each at most every two seconds, and the first ones"


def test_a_worker_that_is_started_before_its_broker_waits_for_it(own_broker: KafkaBroker, tmp_path: Path) -> None:
    raw = settings(own_broker.bootstrap)
    create_topics(parse_config(raw))
    own_broker.stop()
    try:
        with WorkerProcess(raw, tmp_path) as worker, WorkerProcess(raw, tmp_path) as other:
            for probe in (Probe(worker.port), Probe(other.port)):
                wait_for("it says that it waits", partial(_waits, probe, own_broker), 120)
                assert probe.ask("/livez").text == "alive"
            assert other.stop() == 0, "SIGTERM ends the waiting"
            own_broker.start()
            wait_for("it is ready", worker.is_ready, 120)
            assert worker.stop() == 0
            assert worker.log.read_text().count("the start waits for brokers") == 1
            assert worker.log.read_text().count("the start goes on") == 1
    finally:
        own_broker.start()


def _waits(probe: Probe, broker: KafkaBroker) -> bool:
    answer = probe.ask("/readyz")
    return answer.status == 503 and f"no broker answers ({broker.bootstrap}) for" in answer.text

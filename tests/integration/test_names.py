"""Workers with a name in the group: one that was killed, two of the same name, and one whose name is taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.waiting import wait_for

from attributary_agents.demo.brokers import Broker
from tests.integration.groups import (
    SteadyStream,
    created,
    passing_member,
    raw_config,
    takeovers,
    wait_settled,
    worker_in,
)

pytestmark = [pytest.mark.long, pytest.mark.kafka]
LONG_S = 600.0
"""A session that is not over while a test runs."""


def test_a_killed_worker_goes_on_within_its_session_and_leaves_what_an_undisturbed_one_leaves(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw = raw_config(kafka_broker.bootstrap, "named", session_timeout_s=LONG_S)
    took = takeovers(worker_in(raw, tmp_path, instance_id="w-0"), raw, kills=2)
    assert max(took) < LONG_S, "it did not wait for the session of the one that was killed"


def test_a_second_worker_of_the_same_name_is_refused_and_the_first_goes_on(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw = raw_config(kafka_broker.bootstrap, "same-name", session_timeout_s=LONG_S)
    config = created(raw)
    first, second = (worker_in(raw, tmp_path, instance_id="w-0") for _ in range(2))
    with first, SteadyStream(config, 20):
        wait_settled([first])
        with second:
            assert second.wait(120) == 2
        assert "kafka.instance_id: 'w-0' is a member of the group same-name already" in second.log_tail
        first.wait_consumed(first.total("records_consumed_total") + 50, timeout_s=60)
        assert first.stop() == 0


def test_a_worker_whose_name_is_taken_ends_and_stores_nothing_further(kafka_broker: Broker, tmp_path: Path) -> None:
    raw = raw_config(kafka_broker.bootstrap, "taken-name", session_timeout_s=6.0)
    config = created(raw)
    worker = worker_in(raw, tmp_path, instance_id="w-0")
    with worker, SteadyStream(config, 20):
        wait_settled([worker])
        worker.wait_consumed(50, timeout_s=60)
        with passing_member(config, "w-0"):
            wait_for("the worker has ended", lambda: worker.exit_code is not None, 90)
    assert worker.exit_code == 2
    last = worker.log_tail.splitlines()[-1]
    assert "another worker has joined the group taken-name as kafka.instance_id 'w-0'" in last
    assert "Traceback" not in worker.log.read_text()

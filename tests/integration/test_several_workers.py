"""Two workers of one machine on Apache Kafka: one is killed, all are stopped, and each model is in one scrape."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.kafka import produce
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess, metrics_at

from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 6000
MODELS = ("credit", "fraud", "loans", "cards")
PARTITIONS = 4


def records(first: int, last: int) -> list[list[tuple[bytes, bytes, list[tuple[str, bytes]]]]]:
    """The records of each partition, which has one model; some cannot be used."""
    values = [observation(i, flipped=i > N // 2) for i in range(first, last)]
    for i in range(97, len(values), 499):
        values[i] = b"{poison"
    return [[(MODELS[p].encode(), value, []) for value in values[p::PARTITIONS]] for p in range(PARTITIONS)]


def pids(worker: WorkerProcess) -> dict[str, int]:
    """The processes that have last been started, by the names of the workers."""
    said = re.findall(r"\[supervisor\] .*: (worker \d) is process (\d+)$", worker.log.read_text(), re.MULTILINE)
    return {name: int(pid) for name, pid in said}


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and ") Z " not in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.parametrize("named", [False, True])
def test_a_killed_one_of_two_workers_leaves_what_an_undisturbed_one_leaves(
    named: bool, kafka_broker: Broker, tmp_path: Path
) -> None:
    name = {"instance_id": "rack-7"} if named else {}
    raw, config = created(kafka_broker, partitions=PARTITIONS, models=MODELS, kafka=name)

    def send(first: int, last: int) -> None:
        for partition, some in enumerate(records(first, last)):
            produce(kafka_broker.bootstrap, config.kafka.topics.observations, some, partition=partition)

    def consumed(n: int) -> Callable[[], bool]:
        # A partition that is away for a moment has no series: what is read is at least what is seen.
        return lambda: worker.total("records_consumed_total") >= n

    send(0, N // 2)
    with WorkerProcess(raw, tmp_path, "--workers", "2") as worker:
        wait_for("some is handled", consumed(N // 5), 120)
        before = pids(worker)
        os.kill(before["worker 1"], signal.SIGKILL)
        send(N // 2, N)
        wait_for("worker 1 is started again", lambda: pids(worker)["worker 1"] != before["worker 1"], 60)
        wait_for("all is handled", consumed(N), 180)
        wait_for("all are ready", worker.is_ready, 60)
        after = pids(worker)
        assert {name for name in after if after[name] != before[name]} == {"worker 1"}

        def shown(name: str, *labels: str) -> list[tuple[str, ...]]:
            """What the series of all workers have in these labels."""
            found = [one for port in worker.ports for one in metrics_at(port, name).get(name, {})]
            return sorted(tuple(dict(one)[label] for label in labels) for one in found)

        models = sorted((model,) for model in MODELS)
        wait_for(
            "each model is in one target's scrape",
            lambda: shown("attributary_model_observations_total", "model_id") == models,
            60,
        )
        places = shown("attributary_records_consumed_total", "topic", "partition")
        assert len(places) == len(set(places)) == 2 * PARTITIONS, "of observations and of deployments"
        assert worker.stop() == 0
    log = worker.log.read_text()
    assert "worker 1 was ended by SIGKILL; it starts again in 1 s" in log
    assert not any(map(is_there, after.values()))
    left = re.findall(r"^\[(worker \d)\] .* stopped after .* goes on at offset \[", log, re.MULTILINE)
    assert sorted(left) == ["worker 0", "worker 1"], "both had partitions"
    lines = [line for line in log.splitlines() if line.strip()]
    assert [line for line in lines if not re.match(r"\[(supervisor|worker [01])\] ", line)] == []

    expected = check_equal(kafka_broker.bootstrap, config)
    assert expected.sent[config.kafka.topics.incidents], "the stream should change the models"
    assert {*expected.partitions} == {*range(PARTITIONS)}


def test_workers_whose_supervisor_is_killed_stop_with_a_last_checkpoint(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(
        kafka_broker, partitions=2, models=("credit",), checkpoint={"interval_s": 600, "max_observations": 10**6}
    )
    topic = config.kafka.topics.observations
    with WorkerProcess(raw, tmp_path, "--workers", "2") as worker:
        wait_for("both have joined", worker.is_ready, 120)  # no rebalance stores what is to be stored by the stop
        produce(kafka_broker.bootstrap, topic, [(b"credit", observation(i), []) for i in range(500)], partition=1)
        wait_for("all is handled", lambda: worker.total("records_consumed_total") == 500, 120)
        started = pids(worker)
        worker.kill()
        wait_for("all have ended", lambda: not any(map(is_there, started.values())), 60)
    assert f"500 observations handled, all of them are stored; {topic} goes on at offset [1] 500" in (
        worker.log.read_text()
    )
    check_equal(kafka_broker.bootstrap, config)


def test_a_fault_that_no_restart_mends_ends_all_workers_with_its_exit_code(
    kafka_broker: Broker, tmp_path: Path
) -> None:
    raw, _ = created(kafka_broker, partitions=2)
    raw["kafka"] |= {"topic_prefix": "nobody-has-made-these"}
    with WorkerProcess(raw, tmp_path, "--workers", "2") as worker:
        assert worker.wait(60) == 2
    log = worker.log.read_text()
    assert "missing topics: nobody-has-made-these.observations.v1" in log
    assert re.search(r"worker [01] ended with exit code 2: all stop\. ", log)
    assert "Traceback" not in log


def test_more_workers_than_partitions_are_refused(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, _ = created(kafka_broker, partitions=2)
    with WorkerProcess(raw, tmp_path, "--workers", "3") as worker:
        assert worker.wait(60) == 2
    assert "--workers 3: " in worker.log_tail
    assert "1 of them would have nothing to do" in worker.log_tail

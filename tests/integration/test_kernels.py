"""Workers on a machine without compiled kernels: one process compiles them, and only then any joins the group."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.admin import count_members
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(900)]
N = 300
COMPILING = re.compile(r"not ready: compiling kernels, (\d+) of (\d+)")


def test_kernels_are_compiled_once_for_the_machine_before_a_worker_joins(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker, partitions=2, models=("credit", "fraud"))
    records = [(model, observation(i), list[tuple[str, bytes]]()) for i in range(N) for model in (b"credit", b"fraud")]
    produce(kafka_broker.bootstrap, config.kafka.topics.observations, records)
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    first = WorkerProcess(raw, tmp_path, forked=False, env=kept)
    several = WorkerProcess(raw, tmp_path, "--workers", "2", forked=False, env=kept)

    def compiled(worker: WorkerProcess) -> int:
        found = COMPILING.match(worker.readiness())
        return int(found[1]) if found else 0

    with first, several:
        wait_for("one compiles kernels", lambda: compiled(first) + compiled(several) >= 3, 120)
        one, other = (first, several) if compiled(first) else (several, first)
        waits = "not ready: waiting for another process of this machine, which compiles kernels"
        wait_for("the other one waits for it", lambda: other.readiness() == waits, 60)
        assert count_members(config.kafka) == 0, "neither has joined"
        assert one.stop() == 0
        wait_for("the other one compiles the rest", lambda: compiled(other) > 0, 60)
        assert count_members(config.kafka) == 0
        wait_for("it is ready", other.is_ready, 600)
        other.wait_consumed(2 * N, timeout_s=120)
        explained = other.samples("attributary_model_observations_total")
        assert {dict(labels)["model_id"]: n for labels, n in explained.items()} == {"credit": N, "fraud": N}
        one.start()
        wait_for("all are ready", lambda: one.is_ready() and other.is_ready(), 120)
        assert one.stop() == other.stop() == 0
    lines = [worker.log.read_text() for worker in (one, other)]
    assert [text.count("compiled the kernels in") for text in lines] == [0, 1]
    assert lines[1].count("another process of this machine compiles kernels, which is waited for") == 1
    assert re.search(r"compiling kernels, once on this machine: \d+ of \d+", lines[1])
    assert not [
        line for text in lines for line in text.splitlines() if re.search(r" (ERROR|CRITICAL) |Traceback", line)
    ]

"""What the logs of two healthy workers hold, through a rebalance in and out and a deployment."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.cluster.log import SOON, lines_of, run
from benchmarks.cluster.workplace import raw_config

from attributary_agents.demo.brokers import Broker

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_a_healthy_life_has_no_line_at_error(
    kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SOON.items():  # what Faust judges after five minutes, after seconds
        monkeypatch.setenv(name, value)
    raw = raw_config(kafka_broker.bootstrap, "quiet-log", kilobytes=500, session_timeout_s=6.0)
    lines = run(raw, tmp_path, seconds=25, per_s=20)
    assert [line for line in lines if line.is_wrong] == []
    assert any("stopped after" in line.text for line in lines), "it is the workers' logs that were read"


def test_what_is_no_line_of_a_log_is_wrong_and_what_is_indented_belongs_to_the_line_above() -> None:
    log = """\
2026-11-23 17:55:17,001 WARNING mode.timers: Timer attributary.tick is overlapping (interval=1.0 runtime=2.0)
2026-11-23 17:55:17,002 WARNING attributary_agents.worker.watchdog: checkpoint has lasted for 30 s
  File "model.py", line 1
Traceback (most recent call last):
"""
    assert [(line.level, line.is_wrong) for line in lines_of(log)] == [
        ("WARNING", True),
        ("WARNING", False),
        ("ERROR", True),
    ]

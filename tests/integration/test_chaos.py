"""Short versions of all chaos scenarios: `make chaos` has the long ones."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.chaos.scenarios.registry import SCENARIOS

from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.processes import start_child, stop_child

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(1500)]
ROOT = Path(__file__).resolve().parents[2]

# Side by side, each on a broker of its own: most of the time they wait for sessions and rebalances. Both take about as
# long. What kills nodes comes first and together: it has no use for the broker, and shares a cluster.
GROUPS = (
    ("kills", "rolling", "sizes", "proxy", "rebalances", "models", "garbage", "soak", "attached"),
    ("cluster", "transactions", "broker-stop", "pause", "day", "attached-once"),
)


@pytest.fixture(scope="module")
def checks(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The checks of every scenario; `kafka_broker` says where there is no Kafka."""
    folders = [tmp_path_factory.mktemp("chaos") for _ in GROUPS]
    processes = [
        start_child(
            [sys.executable, "-m", "benchmarks.chaos", *group, "--short", "--out", folder / "out"],
            log=folder / "log",
            env={"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
        for group, folder in zip(GROUPS, folders, strict=True)
    ]
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        for process, folder in zip(processes, folders, strict=True):
            process.wait()
            assert (folder / "out/report.json").exists(), (folder / "log").read_text(errors="replace")[-3000:]
            found |= json.loads((folder / "out/report.json").read_text())
    finally:
        for process in processes:
            stop_child(process, 60)
    return found


def test_all_scenarios_are_run() -> None:
    assert sorted(name for group in GROUPS for name in group) == sorted(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_disturbed_group_leaves_what_an_undisturbed_run_leaves(
    scenario: str, checks: dict[str, list[dict[str, Any]]]
) -> None:
    assert len(checks[scenario]) >= 5
    assert [check for check in checks[scenario] if not check["passed"]] == []

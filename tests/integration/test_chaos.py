"""Short versions of chaos scenarios that no other test here shows: `make chaos` has all of them, and longer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.chaos.scenarios.registry import ON_REQUEST, SCENARIOS

from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.processes import start_child, stop_child

pytestmark = [pytest.mark.long, pytest.mark.kafka, pytest.mark.timeout(1500)]
ROOT = Path(__file__).resolve().parents[2]

# Side by side, each on a broker of its own: most of the time they wait for sessions and rebalances. Both take about as
# long.
GROUPS = (("kills", "rolling", "sizes"), ("proxy", "day", "attached-once"))
ELSEWHERE = {
    "broker-stop": "test_broker_away.py",
    "pause": "test_long_steps.py",
    "garbage": "test_garbage.py",
    "cluster": "test_cluster.py",
    "transactions": "test_exactly_once.py",
    "rebalances": "test_several_workers.py",
    "models": "test_large_states.py",
    "attached": "sources/test_exact.py",
}
"""Where what the other scenarios break is broken in a test of its own."""


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


def test_each_scenario_is_run_here_or_has_a_test_of_its_own() -> None:
    names = [name for group in GROUPS for name in group] + list(ELSEWHERE)
    assert sorted([*names, *ON_REQUEST]) == sorted(SCENARIOS)
    assert all((Path(__file__).parent / file).exists() for file in ELSEWHERE.values())


@pytest.mark.parametrize("scenario", [name for group in GROUPS for name in group])
def test_a_disturbed_group_leaves_what_an_undisturbed_run_leaves(
    scenario: str, checks: dict[str, list[dict[str, Any]]]
) -> None:
    assert len(checks[scenario]) >= 5
    assert [check for check in checks[scenario] if not check["passed"]] == []

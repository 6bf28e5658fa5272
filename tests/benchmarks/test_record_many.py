"""What an observation of one of many models costs: the benchmark's order, its models, and what it prints."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest
from benchmarks.record.cases import CASES
from benchmarks.record.many import MATURE, RUNS, Records, in_runs, mature_partition

from attributary_agents.models.model_state import ModelState

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("run", RUNS)
def test_observations_come_in_runs_of_one_model(run: int) -> None:
    order = in_runs(50, run, 1000, random.Random(3))
    assert len(order) == 1000
    assert all(len(list(same)) % run == 0 for _, same in groupby(order))
    assert len(set(order)) > 30


def test_every_model_begins_from_the_same_state_and_shares_none_of_it() -> None:
    records = Records(CASES["learn"])
    partition = mature_partition(CASES["learn"], 3, records)
    for key in (b"m0", b"m2", b"m2"):
        assert partition.handle(records.next(key)) == []
    found: list[ModelState] = [partition.models[name] for name in ("m0", "m2")]
    assert [state.n_observations for state in found] == [MATURE + 1, MATURE + 2]
    assert found[0].model["LogisticRegression"].weights is not found[1].model["LogisticRegression"].weights


@pytest.mark.long
def test_the_command_prints_a_row_of_each_run_for_worker_and_model() -> None:
    # In a process of its own: it sets what is alive aside, and logs nothing.
    argv = ["--models", "4", "--records", "40", "--rounds", "1", "--case", "regression"]
    command = [sys.executable, "-m", "benchmarks.record.many", *argv]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    rows = re.findall(r"│ +4 │ (worker|model alone) +│ +(\d+) │ +[\d.]+ │ +[\d.]+ │ \d", text)
    assert rows == [(what, str(run)) for what in ("worker", "model alone") for run in RUNS]

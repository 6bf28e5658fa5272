"""A start in stages, as `make memory` takes it: its parts and the rest are the worker's memory."""

import sys
from pathlib import Path

import pytest
from benchmarks.memory.__main__ import breakdown
from benchmarks.memory.running import Run, run_stages
from benchmarks.memory.stages import INTERPRETER, MODULES, READY
from benchmarks.process import Resident, resident

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")


@pytest.mark.long
def test_the_parts_of_a_start_and_what_comes_later_are_the_memory_of_the_worker() -> None:
    stages = run_stages()
    assert [stage.name for stage in stages] == [INTERPRETER, *MODULES, READY]
    end = Resident(own=300.0, files=80.0, shared=10.0)
    run = Run(start=end.less(Resident(5.0, 1.0, 0.0)), end=end, threads=9, ready_s=3.0, ready_cpu_s=2.0)
    cells = [list(column.cells) for column in breakdown("", stages, run).columns]
    assert cells[0][-2:] == ["the observations", "the worker"]
    for column in cells[1:4]:
        *parts, whole = map(float, column)
        assert sum(parts) == pytest.approx(whole, abs=0.05 * len(parts) + 0.05)
    assert cells[3][-2:] == ["+6.0", "+380.0"]


def test_what_this_process_has_resident_is_what_the_system_says() -> None:
    found = resident()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    said = {line.split(":")[0]: int(line.split()[1]) * 1024 / 1e6 for line in lines}
    assert found.total == pytest.approx(said["Rss"], rel=0.02)
    assert found.proportional == pytest.approx(said["Pss"], rel=0.02)
    assert found.own == pytest.approx(said["Anonymous"], rel=0.02)

"""The benchmark of the mapper maps all records, and prints ratios over copying alone."""

from __future__ import annotations

import pytest
from benchmarks.copying import main

pytestmark = [pytest.mark.long, pytest.mark.kafka]


def test_it_prints_what_each_costs_over_copying(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick"]) == 0
    lines = {line[:24].strip(): line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["copying alone"][-1] == "1.00"
    for name in ("mapper, plain paths", "mapper, JMESPath"):
        ratio = float(lines[name][-1])
        assert ratio == pytest.approx(float(lines[name][-2]) / float(lines["copying alone"][-2]), rel=0.02)

"""Lasting shifts, compiled and as plain Python: the same events and snapshots to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from attributary_explainers.core import is_compiled

from .both_modes import printed_compiled, printed_plainly

SCRIPT = """
import numpy as np
from attributary_explainers.shifts.shift import ImportanceShift

rng = np.random.default_rng(3)
shift, names = ImportanceShift(), ("a", "b", "c")
increments = rng.normal(1.0, 2.0, size=(9000, 3))
increments[7000:, 0] += 2.0
increments[5000, 2] = np.nan
for n, row in enumerate(increments):
    event = shift.update(("d", *names) if n > 6000 else names, np.append(row, 0.5) if n > 6000 else row)
    if event is not None:
        print(event)
print(shift.snapshot())
"""


@pytest.mark.skipif(not is_compiled(), reason="not compiled: there is one mode alone")
def test_shifts_are_the_same_as_c_and_as_plain_python(tmp_path: Path) -> None:
    found = printed_compiled(SCRIPT)
    assert "Shift(" in found
    assert printed_plainly(SCRIPT, tmp_path) == found

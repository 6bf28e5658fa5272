"""All rows, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers import change
from benchmarks.papers.ipfi import approximation as ipfi
from benchmarks.papers.ipfi import cost as ipfi_cost
from benchmarks.papers.ipfi import drift as ipfi_drift
from benchmarks.papers.isage import (
    elec2 as isage_elec2,
)
from benchmarks.papers.isage import (
    removal as isage_removal,
)
from benchmarks.papers.isage import (
    sensors,
)
from benchmarks.papers.isage import (
    static as isage_static,
)
from benchmarks.papers.isage import (
    switching as isage,
)
from benchmarks.papers.rows import Row

ROWS: tuple[Row, ...] = tuple(
    row
    for module in (change, ipfi, ipfi_drift, ipfi_cost, isage, isage_removal, isage_static, isage_elec2, sensors)
    for row in module.ROWS
)

ROWS_BY_NAME = {row.name: row for row in ROWS}


def select(beginnings: Sequence[str]) -> tuple[Row, ...]:
    """The rows whose names begin with one of these; all for none.

    Raises
    ------
    LookupError
        Nothing begins with one of them.
    """
    for beginning in beginnings:
        if not any(row.name.startswith(beginning) for row in ROWS):
            raise LookupError(f"no row begins with {beginning!r}: --list names them")
    return tuple(row for row in ROWS if not beginnings or row.name.startswith(tuple(beginnings)))

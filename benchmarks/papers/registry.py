"""All rows, in the order of the table."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers import (
    change,
    ipfi,
    ipfi_cost,
    ipfi_drift,
    isage,
    isage_elec2,
    isage_removal,
    isage_static,
    sensors,
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

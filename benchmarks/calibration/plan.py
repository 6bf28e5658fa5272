"""Which runs the table is made of, in full and in small."""

from __future__ import annotations

from dataclasses import replace

from .rules import RULES
from .runs import Cell
from .worlds import AUTOREGRESSIVE, REGIMES, SEASONS

RUNS = 400
"""Of each cell of autoregressive streams: a true .95 then shows as .928 to .972, give or take two standard errors."""
LONG_RUNS = 200
"""Of each of the long cells: .92 to .98."""
SEEDS = 160
"""Of each rule of bits."""

BOTH = ("pfi", "sage")


def full() -> list[Cell]:
    """Return all cells; the autoregressive ones are of 5/alpha and 20/alpha rows."""
    cells = []
    for world in AUTOREGRESSIVE:
        cells.append(Cell("dependent", world.name, 0.005, (1000, 4000), BOTH, RUNS))
        cells.append(Cell("dependent", world.name, 0.001, (5000,), ("pfi",), RUNS))
    cells += [Cell("regimes", world.name, 0.001, (20_000,), BOTH, LONG_RUNS) for world in REGIMES]
    cells += [Cell("seasons", world.name, 0.001, (20_000,), BOTH, LONG_RUNS) for world in SEASONS]
    cells += [Cell("rules", world.name, 0.001, (20_000,), ("sage",), SEEDS) for world in RULES]
    return cells


def quick() -> list[Cell]:
    """Return fewer and shorter runs: enough to see that everything works, and what is far off."""
    cells = []
    for cell in full():
        if cell.part == "dependent":
            if cell.alpha == 0.005:
                cells.append(replace(cell, read_at=(1000,), runs=20))
        else:
            cells.append(replace(cell, alpha=0.005, read_at=(4000,), runs=8))
    return cells


PARTS = tuple(dict.fromkeys(cell.part for cell in full()))

"""Seeded runs of explainers on streams with an exact importance, and what they say of it: bias, spread, coverage."""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from attributary_explainers import Explainers, IncrementalPFI, IncrementalSAGE
from attributary_explainers.incremental.removal import RemovalExplainer
from attributary_explainers.typing import Array
from benchmarks.calibration.rules import RULES
from benchmarks.calibration.worlds import AUTOREGRESSIVE, REGIMES, SEASONS, WORLDS, World

EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
ALL = WORLDS | {world.name: world for world in RULES}

TOO_LOCAL, TOO_SLOW = 0.05, 0.2
"""From where on it is said by name that a feature moves too slowly: its correlation with its replacements, and its
autocorrelation time times alpha."""


@dataclass(frozen=True)
class Cell:
    """Runs of explainers, as installed but for alpha, on one stream; they are read after each of some numbers of rows.

    Several explainers share each run: its observations, and the calls of the model.
    """

    part: str
    world: str
    alpha: float
    read_at: tuple[int, ...]
    explainers: tuple[str, ...]
    runs: int


@dataclass(frozen=True)
class Record:
    """What the runs of one cell say of one feature by one explainer after n observations."""

    part: str
    world: str
    loss: str
    explainer: str
    alpha: float
    n: int
    feature: str
    runs: int
    exact: float
    mean: float
    """Of the importance, over runs."""
    sd: float
    """Of the importance, between runs."""
    error: float
    """Mean standard error."""
    held: float
    """Share of the runs whose 95 % interval holds the exact importance."""
    said: float
    """Share of the runs that say by name that the feature moves too slowly."""

    @property
    def bias(self) -> float:
        """Relative to the exact importance."""
        return self.mean / self.exact - 1.0

    @property
    def z(self) -> float:
        """Distance of the mean from the exact importance, in its standard errors between runs."""
        off = self.mean - self.exact
        return off / (self.sd / self.runs**0.5) if self.sd else math.copysign(math.inf, off) if off else 0.0


def run(task: tuple[Cell, int]) -> Array:
    """Return importance, standard error, half width and whether it is named: shape (reads, explainers, features, 4)."""
    cell, seed = task
    world = ALL[cell.world]
    rng = np.random.default_rng([seed, zlib.crc32(world.name.encode())])
    made = {
        name: EXPLAINERS[name](world.model, loss=world.loss, alpha=cell.alpha, seed=seed) for name in cell.explainers
    }
    together = Explainers(world.model, made)
    observations, targets = world.draw(rng, max(cell.read_at))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the share of runs that say it stands in the table
        for n, (x, y) in enumerate(zip(observations, targets, strict=True), start=1):
            together.explain_one(x, y)
            if n in cell.read_at:
                found.append([_read(explainer, world) for explainer in made.values()])
    return np.array(found)


def _read(explainer: RemovalExplainer, world: World) -> list[tuple[float, ...]]:
    told = {
        name: float(abs(explainer.locality.get(name, 0.0)) > TOO_LOCAL or time * explainer.alpha > TOO_SLOW)
        for name, time in explainer.autocorrelation_time.items()
    }
    of = (explainer.importance, explainer.std_error, explainer.half_width, told)
    return [tuple(values.get(feature, math.nan) for values in of) for feature in world.formula.features]


def records_of(cell: Cell, found: Array) -> list[Record]:
    """Return what the runs of a cell say; `found` has the shape (runs, reads, explainers, features, 4)."""
    world = ALL[cell.world]
    records = []
    for e, explainer in enumerate(cell.explainers):
        exact = world.exact(explainer)
        for i, n in enumerate(cell.read_at):
            for j, feature in enumerate(world.formula.features):
                value, error, half, told = found[:, i, e, j].T
                measured = {
                    "exact": exact[feature],
                    "mean": value.mean(),
                    "sd": value.std(ddof=1),
                    "error": error.mean(),
                    "held": (np.abs(value - exact[feature]) <= half).mean(),
                    "said": np.nanmean(told) if np.isfinite(told).any() else 0.0,
                }
                records.append(
                    Record(
                        cell.part, cell.world, world.loss, explainer, cell.alpha, n, feature, len(found),
                        **{name: float(number) for name, number in measured.items()},
                    )
                )  # fmt: skip
    return records


def measure(cells: Sequence[Cell], jobs: int) -> list[Record]:
    """Run all cells in so many processes, with a bar that shows how far it is."""
    # The long ones first, so that the processes end together.
    ordered = sorted(cells, key=lambda cell: -max(cell.read_at) * len(cell.explainers))
    tasks = [(cell, seed) for cell in ordered for seed in range(cell.runs)]
    console = Console(stderr=True)
    with ProcessPoolExecutor(jobs) as pool:
        done: Iterable[Array] = track(pool.map(run, tasks), "runs", total=len(tasks), console=console)
        results = iter(list(done))
    found = {cell: np.array([next(results) for _ in range(cell.runs)]) for cell in ordered}
    return [record for cell in cells for record in records_of(cell, found[cell])]


def as_data(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return records as plain data."""
    return [asdict(record) for record in records]


def from_data(data: Iterable[dict[str, Any]]) -> list[Record]:
    """Return the records that `as_data` was given."""
    return [Record(**record) for record in data]


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

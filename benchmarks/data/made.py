"""Makes stand-ins for data sets whose sources state no terms: the same columns, types and main facts, from a seed."""

from __future__ import annotations

import csv
import gzip
import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import ELEC2_DRIFT, ELEC2_ROWS, NAMES, data_path

ELEC2 = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer", "class")
CALIFORNIA = (
    "MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude", "MedHouseVal",
)  # fmt: skip
HALF_HOURS = 48
"""Half hours of a day."""

Column = npt.NDArray[np.float64]
Table = tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]

DATA_HELP = "a folder, or `made` for stand-ins of the data whose sources state no terms (default: benchmarks/data)"
"""What `--data` takes."""


def made_elec2(n: int = ELEC2_ROWS, *, drift: int = ELEC2_DRIFT, seed: int = 1) -> Table:
    """Half hours of two markets: a label is UP where the price is above its mean of the last day.

    Before `drift` the price is that of New South Wales, and the columns of Victoria are constant. From it on the price
    is the mean of both, so that a model needs `vicprice`, too.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    day, period = t // HALF_HOURS, t % HALF_HOURS / (HALF_HOURS - 1)
    course = np.sin(2 * np.pi * (period - 0.3))
    demand = _autoregression(rng, n) + course - 0.5 * (day % 7 >= 5)
    # A quarter of the way to the drift prices rise, and every half of it they fall or rise again: so a model changes.
    level = np.where((t + drift // 4) // (drift // 2) % 2, 0.75, -0.75)
    nsw = level + 0.35 * demand + 0.65 * _autoregression(rng, n)
    vic = 0.8 * nsw + 0.6 * _autoregression(rng, n)
    price = np.where(t < drift, nsw, 0.5 * (nsw + vic))
    # 0.98 makes 42 % of the labels UP, as many as there are in the data.
    is_up = np.exp(price) > 0.98 * _mean_of_the_last(HALF_HOURS, np.exp(price))
    connected = t >= drift
    columns = [
        (day / 943).clip(0.0, 1.0),
        (day + 1) % 7 + 1,
        period,
        (0.05 * np.exp(0.55 * nsw)).clip(0.0, 1.0),
        (0.44 + 0.13 * demand).clip(0.0, 1.0),
        np.where(connected, (0.003 * np.exp(0.4 * vic)).clip(0.0, 1.0), 0.003467),
        np.where(connected, (0.42 + 0.1 * demand + 0.05 * _autoregression(rng, n)).clip(0.0, 1.0), 0.422915),
        np.where(connected, (0.55 - 0.1 * vic + 0.12 * _autoregression(rng, n)).clip(0.0, 1.0), 0.414912),
    ]
    return ELEC2, zip(*(_numbers(column, 6) for column in columns), np.where(is_up, "UP", "DOWN").tolist(), strict=True)


def made_california_housing(n: int = 20_640, *, seed: int = 1) -> Table:
    """Blocks of houses around two cities: the price follows income, crowding, age and the distance to a city."""
    rng = np.random.default_rng(seed)
    income, rooms, bedrooms, people, crowding, noise = rng.normal(size=(6, n))
    is_north = rng.random(n) < 0.4
    east, north = np.abs(rng.normal(scale=0.9, size=n)), rng.normal(scale=0.9, size=n)
    age = rng.normal(28.6, 12.6, n).round().clip(1, 52)
    price = 0.71 + 0.46 * income - 0.15 * crowding + 0.003 * (age - 28.6) - 0.12 * np.hypot(east, north) + 0.35 * noise
    columns = [
        (3.53 * np.exp(0.47 * income)).clip(0.4999, 15.0001),
        age,
        (5.23 * np.exp(0.17 * income + 0.18 * rooms)).clip(0.85, 141.9),
        (1.05 * np.exp(0.08 * bedrooms - 0.02 * income)).clip(0.34, 34.0),
        (1166.0 * np.exp(0.73 * people)).round().clip(3, 35_682),
        (2.82 * np.exp(0.22 * crowding + 0.06 * people)).clip(0.7, 1243.0),
        (np.where(is_north, 37.7, 34.0) + north).clip(32.54, 41.95),
        (np.where(is_north, -122.2, -118.3) + east).clip(-124.35, -114.31),
        np.exp(price).clip(0.14999, 5.00001),
    ]
    return CALIFORNIA, zip(*(_numbers(column, 5) for column in columns), strict=True)


MADE = {"elec2": made_elec2, "california_housing": made_california_housing}


def write_table(path: Path, table: Table) -> None:
    """Write a data file; its bytes say neither when nor where it was made."""
    header, rows = table
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def choose_folder(data: str, folder: Path) -> Path:
    """The folder that the argument `--data` names: for `made` it is `folder`, with stand-ins and copies of the rest."""
    if data != "made":
        return Path(data)
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        if name in MADE:
            write_table(folder / f"{name}.csv.gz", MADE[name]())
        else:
            shutil.copy(data_path(name), folder)
    return folder


def _autoregression(rng: np.random.Generator, n: int, memory: float = 0.9) -> Column:
    """Normal numbers of variance 1 that go together in time."""
    found, value = np.empty(n), 0.0
    for i, step in enumerate((rng.normal(size=n) * np.sqrt(1.0 - memory**2)).tolist()):
        found[i] = value = memory * value + step
    return found


def _mean_of_the_last(n: int, values: Column) -> Column:
    sums = np.concatenate([[0.0], values.cumsum()])
    end = np.arange(1, len(values) + 1)
    start = np.maximum(end - n, 0)
    return np.asarray((sums[end] - sums[start]) / (end - start))


def _numbers(column: Column, decimals: int) -> list[float]:
    return [float(value) for value in column.round(decimals)]

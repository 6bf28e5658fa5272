"""The benchmark data: where the files are, and what reads them. README.md has their sources and terms."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Observation = tuple[dict[str, Any], Any]

FOLDER = Path(__file__).resolve().parent
NAMES = ("elec2", "bank_marketing", "bike_sharing", "california_housing")
ELEC2_ROWS = 45_312
ELEC2_DRIFT = 17_424
"""0-based row from which vicprice, vicdemand and transfer are no longer constant."""


class NoDataError(Exception):
    """A data file that is to be read is absent."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"no data: {path}")

    def __reduce__(self) -> tuple[type[NoDataError], tuple[Path]]:
        # An exception is pickled by its message otherwise, on its way back from a process of the pool.
        return NoDataError, (self.path,)


def data_path(name: str, folder: Path = FOLDER) -> Path:
    """The file of a data set.

    Raises
    ------
    NoDataError
        The file is not there.
    """
    path = folder / f"{name}.csv.gz"
    if not path.is_file():
        raise NoDataError(path)
    return path


def data_set(name: str, folder: Path = FOLDER) -> Iterator[tuple[dict[str, str], str]]:
    """The rows of a data set as text; the last column is the target."""
    with gzip.open(data_path(name, folder), "rt", encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        *features, _ = next(rows)
        for *x, y in rows:
            yield dict(zip(features, x, strict=True)), y


def elec2(folder: Path = FOLDER) -> Iterator[Observation]:
    """The electricity market, in order; y is whether the price goes up."""
    return (({name: float(value) for name, value in x.items()}, y == "UP") for x, y in data_set("elec2", folder))


def numbers(name: str, folder: Path = FOLDER, *, target: str = "") -> list[Observation]:
    """A whole data set as numbers; text columns are coded by the order of their sorted values.

    Parameters
    ----------
    name, folder
        As for `data_path`.
    target
        The class that is 1, all others 0; empty for a target that is a number.
    """
    rows = list(data_set(name, folder))
    encoded: dict[str, dict[str, float]] = {}
    for feature in rows[0][0]:
        values = sorted({x[feature] for x, _ in rows})
        try:
            encoded[feature] = {value: float(value) for value in values}
        except ValueError:
            encoded[feature] = {value: float(code) for code, value in enumerate(values)}
    return [
        ({feature: encoded[feature][value] for feature, value in x.items()}, int(y == target) if target else float(y))
        for x, y in rows
    ]

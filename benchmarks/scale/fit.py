"""Fits the capacity model of `attributary plan` to what `grid` has measured, and prints its residuals.

    python -m benchmarks.scale fit                  # of the committed measurements
    python -m benchmarks.scale fit FILE --write     # of others; and put it into the package

A sum of terms, in yardsticks, with no negative coefficient: of the time that the worker's own functions took for a
record, from bytes to events, and of the states stored for it. Residuals are relative. Rounds are medians of a point.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

from attributary_agents.planning.plan import terms

MEASURED = Path(__file__).with_name("measured.json")
HERE = Path(__file__).resolve().parents[2]
FITTED = HERE / "agents" / "attributary_agents" / "planning" / "capacity.json"


class Point(NamedTuple):
    """What was measured of one configuration: medians of its rounds."""

    step: float  # yardsticks of the worker's own functions for a record
    stored: float  # models stored for a record
    state_bytes: float
    models: int
    record: float  # yardsticks of a record
    rss: float

    @property
    def terms(self) -> dict[str, float]:
        """The terms of its price."""
        return terms(self.step, self.stored, self.state_bytes)


def medians(measured: Sequence[Mapping[str, Any]]) -> dict[str, Point]:
    """Return each point, by its name."""
    found: dict[str, Point] = {}
    for name in dict.fromkeys(one["point"] for one in measured):
        rounds = [{**one, **one["load"]} for one in measured if one["point"] == name]
        found[name] = Point(*(median(one[key] for one in rounds) for key in Point._fields))
    return found


def fitted(points: Mapping[str, Point]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the coefficients of the terms, and each point's relative residual, measured over fitted less one.

    Least squares of relative residuals with coefficients of at least zero: nothing costs less than nothing.
    """
    rows = [one.terms for one in points.values()]
    prices = np.array([one.record for one in points.values()])
    matrix = np.array([list(row.values()) for row in rows])
    solution, _ = nnls(matrix / prices[:, None], np.ones(len(prices)))
    residuals = prices / (matrix @ solution) - 1.0
    return (
        {name: float(f"{value:.4g}") for name, value in zip(rows[0], solution, strict=True)},
        {name: float(value) for name, value in zip(points, residuals, strict=True)},
    )


def capacity(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capacity model of measurements, as it is written down."""
    points = medians(data["measured"])
    coefficients, residuals = fitted(points)
    sizes = [abs(one) for one in residuals.values()]
    return {
        "made_by": f"{data['made_by']}; python -m benchmarks.scale fit",
        "versions": data["versions"],
        "coefficients": coefficients,
        "error": round(max(sizes), 3),
        "typical_error": round(median(sizes), 3),
        "residuals": {name: round(one, 3) for name, one in residuals.items()},
        "memory": memory(points),
    }


def memory(points: Mapping[str, Point]) -> dict[str, float]:
    """Return the bytes of a worker with one small model, and the bytes in memory for one of a stored state.

    The latter is the largest that was found: a worker without memory ends, and one with too much does not.
    """
    base = median(one.rss for one in points.values() if one.models == 1)
    many = [max(0.0, one.rss - base) / (one.models * one.state_bytes) for one in points.values() if one.models >= 100]
    return {"worker_bytes": float(f"{base:.3g}"), "bytes_per_stored": float(f"{max(many):.3g}")}


def main(argv: Sequence[str] | None = None) -> int:
    """Fit, print; write where that is asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale fit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("measured", nargs="?", type=Path, default=MEASURED, metavar="FILE", help="written by `grid`")
    parser.add_argument("--write", action="store_true", help="put the fit into the package")
    args = parser.parse_args(argv)
    made = capacity(json.loads(args.measured.read_text()))
    out = Console(width=120)
    title = f"error {made['error']:.0%}, typically {made['typical_error']:.0%}"
    table = Table("term", "yardsticks", title=title)
    for name, value in made["coefficients"].items():
        table.add_row(name, f"{value:.4g}")
    out.print(table)
    table = Table("point", "residual", title="residuals: measured over fitted, less one")
    for name, value in made["residuals"].items():
        table.add_row(name, f"{value:+.1%}")
    out.print(table)
    out.print(f"memory: {made['memory']}")
    if args.write:
        FITTED.write_text(dumped(made))
        out.print(f"written: {FITTED}")
    return 0


def dumped(made: Mapping[str, Any]) -> str:
    """Return the text of the file."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())

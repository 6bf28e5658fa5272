"""Fits the capacity model of `attributary plan` to what `grid` has measured, and prints its residuals.

    python -m benchmarks.scale fit                  # of the committed measurements
    python -m benchmarks.scale fit FILE --write     # of others; and put it into the package

Two sums of terms, in yardsticks, with no negative coefficient: by the settings alone, and by the time that the worker's
own functions took for a record, from bytes to events. Residuals are relative. Rounds are medians of a point.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls

from attributary_agents.planning.capacity import Load, by_settings, by_step

MEASURED = Path(__file__).with_name("measured.json")
HERE = Path(__file__).resolve().parents[2]
FITTED = HERE / "agents" / "attributary_agents" / "planning" / "capacity.json"

Terms = Callable[[Load], dict[str, float]]


def medians(measured: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Load, float, float]]:
    """Return load, price of a record in yardsticks and resident bytes of each point, by its name: medians of rounds."""
    found: dict[str, tuple[Load, float, float]] = {}
    for name in dict.fromkeys(one["point"] for one in measured):
        rounds = [one for one in measured if one["point"] == name]
        loads = [one["load"] for one in rounds]
        load: dict[str, Any] = {key: tuple(value) if key == "draws" else value for key, value in loads[0].items()}
        for key in ("predict", "learn", "stored", "state_bytes", "step"):
            load[key] = median(one[key] for one in loads)
        found[name] = Load(**load), median(one["record"] for one in rounds), median(one["rss"] for one in rounds)
    return found


def fitted(points: Mapping[str, tuple[Load, float, float]], terms: Terms) -> tuple[dict[str, float], dict[str, float]]:
    """Return the coefficients of the terms, and each point's relative residual, measured over fitted less one.

    Least squares of relative residuals with coefficients of at least zero: nothing costs less than nothing.
    """
    rows = [terms(load) for load, _, _ in points.values()]
    names = list(rows[0])
    prices = np.array([price for _, price, _ in points.values()])
    matrix = np.array([[row[name] for name in names] for row in rows])
    solution, _ = nnls(matrix / prices[:, None], np.ones(len(prices)))
    residuals = prices / (matrix @ solution) - 1.0
    return (
        {name: float(f"{value:.4g}") for name, value in zip(names, solution, strict=True)},
        {name: float(value) for name, value in zip(points, residuals, strict=True)},
    )


def capacity(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capacity model of measurements, as it is written down."""
    points = medians(data["measured"])
    made: dict[str, Any] = {
        "made_by": f"{data['made_by']}; python -m benchmarks.scale fit",
        "versions": data["versions"],
    }
    for key, terms in (("by_settings", by_settings), ("by_step", by_step)):
        coefficients, residuals = fitted(points, terms)
        sizes = [abs(one) for one in residuals.values()]
        made[key] = {
            "coefficients": coefficients,
            "error": round(max(sizes), 3),
            "typical_error": round(median(sizes), 3),
            "residuals": {name: round(one, 3) for name, one in residuals.items()},
        }
    made["memory"] = memory(points)
    return made


def memory(points: Mapping[str, tuple[Load, float, float]]) -> dict[str, float]:
    """Return the bytes of a worker with one small model, and the bytes in memory for one of a stored state.

    The latter is the largest that was found: a worker without memory ends, and one with too much does not.
    """
    small = [rss for load, _, rss in points.values() if load.models == 1]
    base = median(small)
    many = [
        max(0.0, rss - base) / (load.models * load.state_bytes)
        for load, _, rss in points.values()
        if load.models >= 100
    ]
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
    for key in ("by_settings", "by_step"):
        fit = made[key]
        table = Table(
            "term", "yardsticks", title=f"{key}: error {fit['error']:.0%}, typically {fit['typical_error']:.0%}"
        )
        for name, value in fit["coefficients"].items():
            table.add_row(name, f"{value:.4g}")
        out.print(table)
    table = Table("point", "by settings", "by step", title="residuals: measured over fitted, less one")
    for name in made["by_step"]["residuals"]:
        table.add_row(name, *(f"{made[key]['residuals'][name]:+.1%}" for key in ("by_settings", "by_step")))
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

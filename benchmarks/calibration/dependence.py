"""Largest error of partial dependence at a grid point, in % of the curve's range, over seeded runs.

`python -m benchmarks.calibration.dependence --runs 10`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from attributary_explainers import IncrementalPDP

from .streams.curves import STREAMS

READ_AT = (4000, 6000, 8000)
MOST_MEAN, MOST_WORST = 2.0, 4.0


class Result(NamedTuple):
    """A row of the table."""

    name: str
    errors: tuple[float, ...]
    """Mean over the runs of the largest error in % of the range, at each of `READ_AT`."""
    worst: float
    """The largest of any run at any reading."""
    runs: int
    evaluations: float
    """Evaluations per observation at grid points."""

    @property
    def holds(self) -> bool:
        """Whether the mean is at most 2 % at each reading and the worst run at most 4 %."""
        return max(self.errors) <= MOST_MEAN and self.worst <= MOST_WORST


def measure_one(
    name: str, seed: int, read_at: tuple[int, ...] = READ_AT, **parameters: Any
) -> tuple[list[float], float]:
    """Return the largest error of one run at each reading, in % of the range, and evaluations per observation.

    `parameters` are of `IncrementalPDP`.
    """
    stream = STREAMS[name](seed)
    explainer = IncrementalPDP(stream.model, ["a"], label=stream.label, seed=seed, **parameters)
    errors = []
    for n in range(1, max(read_at) + 1):
        x = stream.row()
        explainer.explain_one(x)
        if n in read_at:
            grid, means = explainer.update()["a"]
            exact = stream.exact(grid)
            errors.append(float(np.abs(np.array(means) - exact).max() / np.ptp(exact)) * 100.0)
        stream.learn(x)
    return errors, explainer.n_evaluations / max(read_at)


def measure(names: Iterable[str] = tuple(STREAMS), runs: int = 10, jobs: int = 2, **parameters: Any) -> list[Result]:
    """Return a result for each stream, of runs with seeds from 1000 on; `parameters` are of `IncrementalPDP`."""
    results = []
    with ProcessPoolExecutor(jobs) as pool:
        for name in names:
            run = partial(measure_one, name, **parameters)
            found = list(pool.map(run, range(1000, 1000 + runs)))
            errors = np.array([of_run for of_run, _ in found])
            evaluations = float(np.mean([count for _, count in found]))
            results.append(Result(name, tuple(errors.mean(axis=0).tolist()), float(errors.max()), runs, evaluations))
    return results


def report(results: list[Result]) -> Table:
    """Return the results as a table."""
    table = Table(title="Largest error of partial dependence at a grid point, % of the curve's range")
    columns = ("stream", *(f"mean at {n}" for n in READ_AT), "worst run", "runs", "evaluations per observation")
    for column in (*columns, f"mean <= {MOST_MEAN:g}, worst <= {MOST_WORST:g}"):
        table.add_column(column)
    for result in results:
        numbers = [f"{error:.1f}" for error in (*result.errors, result.worst)]
        verdict = "holds" if result.holds else "MISSES"
        table.add_row(result.name, *numbers, str(result.runs), f"{result.evaluations:.1f}", verdict)
    return table


def rows(*, quick: bool, jobs: int) -> list[tuple[str, str, str, bool | None]]:
    """Return the line of `make calibration`: what, what is to be reached, what was found, and whether it was."""
    results = measure(runs=2 if quick else 10, jobs=jobs)
    missed = [result.name for result in results if not result.holds]
    means = [max(result.errors) for result in results]
    found = f"mean {min(means):.1f} to {max(means):.1f} %, worst {max(result.worst for result in results):.1f} %"
    found += f"; {len(missed)} of {len(results)} outside: {', '.join(missed)}" if missed else f", all {len(results)}"
    goal = f"mean at most {MOST_MEAN:g} %, worst {MOST_WORST:g} %"
    return [("iPDP, largest error of the range, n >= 4000", goal, found, not missed)]


def main() -> int:
    """Measure the streams that are asked for and print the table; return 1 where one misses."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.dependence", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="seeded runs per stream (default 10)")
    parser.add_argument("--stream", nargs="+", choices=list(STREAMS), default=list(STREAMS), help="names of streams")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    results = measure(args.stream, args.runs, args.jobs)
    Console().print(report(results))
    return 0 if all(result.holds for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())

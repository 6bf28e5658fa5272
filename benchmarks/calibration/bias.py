"""The bias that few draws give iSAGE, and what is left of it: `python -m benchmarks.calibration.bias`."""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attributary_explainers import IncrementalSAGE, SmoothedImportance

from .cases import CASES, FEATURES

WAYS: dict[str, dict[str, Any]] = {
    "independent draws": {"sampling": "independent", "bias_correction": False},
    "stratified": {"sampling": "stratified", "bias_correction": False},
    "independent, corrected": {"sampling": "independent", "bias_correction": True},
    "stratified, corrected (default)": {"sampling": "stratified", "bias_correction": True},
}


def run(task: tuple[str, str, int, int, int]) -> list[float]:
    """Importance per feature after n observations, less that by exact expectations on the same observations."""
    case_name, way, n_samples, n, seed = task
    case = next(case for case in CASES if case.name == case_name)
    rng = np.random.default_rng(seed)
    sage = IncrementalSAGE(case.predict, loss=case.loss, alpha=0.1 / n, n_samples=n_samples, seed=seed, **WAYS[way])
    exact = SmoothedImportance(sage.alpha)
    known: dict[Any, dict[str, float]] = {}
    for _ in range(n):
        x, y = case.draw(rng)
        key = (*x.values(), y)
        known[key] = known[key] if key in known else case.exact_one(x, y)
        sage.explain_one(x, y)
        if sage.n_observations:  # the first observation finds nothing stored to draw from
            exact.update(known[key])
    importance, mean = sage.importance, exact.mean()
    return [importance[name] - mean[name] for name in FEATURES]


def main() -> None:
    """Run every way at every number of draws; print sum of absolute bias over sum of absolute importance."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration.bias", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="seeded runs of each (default 20)")
    parser.add_argument("--observations", type=int, default=2000, help="per run (default 2000)")
    parser.add_argument("--draws", type=int, nargs="+", default=[1, 2, 5, 10, 50], help="m (default 1 2 5 10 50)")
    parser.add_argument("--case", nargs="+", default=[case.name for case in CASES[:4]], help="names of cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    table = Table(title="iSAGE: sum |bias| / sum |exact|, +- its standard error")
    for column in ("case", "draws", *(f"m = {m}" for m in args.draws)):
        table.add_column(column)
    settings = [(case, way) for case in args.case for way in WAYS]
    with ProcessPoolExecutor(args.jobs) as pool:
        for case_name, way in track(settings, console=Console(stderr=True), description="settings"):
            exact = np.array(list(next(c for c in CASES if c.name == case_name).exact("sage").values()))
            cells = []
            for m in args.draws:
                tasks = [(case_name, way, m, args.observations, seed) for seed in range(args.runs)]
                found = np.array(list(pool.map(run, tasks)))
                bias = np.abs(found.mean(axis=0)).sum() / np.abs(exact).sum()
                noise = found.std(axis=0, ddof=1).sum() / np.sqrt(args.runs) / np.abs(exact).sum()
                cells.append(f"{bias:.3f} ±{noise:.3f}")
            table.add_row(case_name, way, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()

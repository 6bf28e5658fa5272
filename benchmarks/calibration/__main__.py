"""Coverage of the 95 % interval of importance, against exact values, over seeded runs."""

from __future__ import annotations

import argparse
import csv
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from attributary_explainers import IncrementalPFI, IncrementalSAGE, make_reservoir
from attributary_explainers.smoothing.kernels import VARIANCE

from .cases import CASES, FEATURES

EXPLAINERS = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
Setting = tuple[str, str, float, str, str]


def run(task: tuple[Setting, int]) -> list[tuple[float, float, float]]:
    """Importance, its standard error, and the one that takes increments as uncorrelated, per feature, of one run."""
    (case_name, explainer, alpha, reservoir, sampling), seed = task
    case = next(case for case in CASES if case.name == case_name)
    rng = np.random.default_rng(seed)
    made = EXPLAINERS[explainer](
        case.predict,
        loss=case.loss,
        alpha=alpha,
        reservoir=make_reservoir(reservoir, 100),
        sampling=sampling,
        n_samples=10,
        seed=seed,
    )
    for _ in range(int(3 / alpha)):
        made.explain_one(*case.draw(rng))
    smoothed = made._smoothed
    q = smoothed.weights.squares
    plain = np.sqrt(smoothed.moments[VARIANCE] * q / (1.0 - q))
    importance, error = made.importance, made.std_error
    order = {name: i for i, name in enumerate(importance)}
    return [(importance[name], error[name], float(plain[order[name]])) for name in FEATURES]


def main() -> int:
    """Run the settings that are asked for, print the table, write the CSV."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="seeded runs per setting (default 200)")
    parser.add_argument("--alpha", type=float, nargs="+", default=[0.01, 0.002], help="smoothing factors")
    parser.add_argument("--explainer", nargs="+", choices=sorted(EXPLAINERS), default=["pfi", "sage"])
    parser.add_argument("--reservoir", nargs="+", default=["geometric"], help="geometric, uniform, sliding_window")
    parser.add_argument("--sampling", nargs="+", default=["stratified"], help="stratified, independent")
    parser.add_argument("--case", nargs="+", default=[case.name for case in CASES], help="names of cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/calibration"), help="folder of results.csv")
    args = parser.parse_args()
    settings: list[Setting] = [
        (case, explainer, alpha, reservoir, sampling)
        for case in args.case
        for explainer in args.explainer
        for alpha in args.alpha
        for reservoir in args.reservoir
        for sampling in args.sampling
    ]
    table = Table(title=f"95 % intervals over {args.runs} runs of 3/alpha observations; m = 10, 100 stored")
    columns = ("case", "explainer", "alpha", "reservoir", "draws", "feature", "exact", "bias / sd", "error / sd")
    for column in (*columns, "plain / sd", "covered"):
        table.add_column(column)
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for setting in track(settings, console=Console(stderr=True), description="settings"):
            tasks = [(setting, seed) for seed in range(args.runs)]
            found = np.array(list(pool.map(run, tasks, chunksize=10)))
            case = next(case for case in CASES if case.name == setting[0])
            exact = case.exact(setting[1])
            for i, name in enumerate(FEATURES):
                value, error, plain = found[:, i].T
                sd = float(value.std(ddof=1))
                if sd == 0.0:
                    continue  # exactly right in every run: there is no error to be calibrated
                covered = float((np.abs(value - exact[name]) <= 1.96 * error).mean())
                row = dict(zip(columns, (*setting, name), strict=False))
                row |= {"exact": exact[name], "bias / sd": (value.mean() - exact[name]) / sd}
                row |= {"error / sd": error.mean() / sd, "plain / sd": plain.mean() / sd, "covered": covered}
                rows.append(row)
                table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(table)
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    pooled = float(np.mean([row["covered"] for row in rows]))
    print(f"{len(rows)} intervals of {args.runs} runs each: {pooled:.3f} covered; written to {args.out}/results.csv")
    return 0


if __name__ == "__main__":
    sys.exit(main())

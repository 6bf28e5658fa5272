"""Give one trained model to a worker in every way, and print whether it says the same and what that costs.

    python -m benchmarks.models                       # Elec2, half a minute
    python -m benchmarks.models --model forest        # a random forest in place of a logistic regression
    python -m benchmarks.models --ways skops,joblib

The model learns the first half of the rows. A worker explains the others by permutation importance and SAGE,
with the same draws each time; the object itself, explained by the library in this process, is what all are compared
with. The difference is the largest of all importances and half intervals of all events. Beside it, what the model alone
takes for a row: in one call for as many rows as an observation needs, and with a call for each.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from itertools import islice
from typing import Any

from rich.console import Console
from rich.table import Table

from attributary_agents.config.reading import parse_config
from attributary_explainers import SlowFeatureWarning
from benchmarks.data import elec2
from benchmarks.models.given import WAYS
from benchmarks.models.same import Row, given, in_own_process, in_worker, tried

out = Console(width=120)


def trained(name: str, rows: Sequence[Row]) -> Any:
    """Return a model that has learnt the rows, of named columns."""
    import pandas
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = pandas.DataFrame([x for x, _ in rows]), [label for _, label in rows]
    if name == "forest":
        return RandomForestClassifier(30, max_depth=6, random_state=1).fit(X, y)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


def same(model: str, ways: Sequence[str], n_rows: int) -> int:
    """Give the model in these ways, compare, print; return 1 where one of them says something else."""
    taken = list(islice(elec2(), 2 * n_rows))
    estimator, rows = trained(model, taken[:n_rows]), taken[n_rows:]
    table = Table(title=f"A {model} model, {n_rows} observations of Elec2", title_justify="left")
    for column in (
        "given as",
        "differs by",
        "at most",
        "ms/observation",
        "µs/row, one call",
        "µs/row, a call each",
        "",
    ):
        table.add_column(column, justify="left" if column in ("given as", "") else "right")
    reference = in_own_process(estimator, rows)
    table.add_row("in this process", "–", "–", f"{reference.seconds * 1e3:.1f}")
    fails = 0
    for name in ways:
        way = WAYS[name]
        if way.missing:
            table.add_row(name, "–", "–", "–", "–", "–", f"{way.missing[0]} is not installed")
            continue
        with given(way, estimator) as said:
            config = parse_config(said)
            found, cost = in_worker(config, rows), tried(config, rows)
        differs = found.differs(reference)
        fails += differs > way.tolerance
        table.add_row(
            name,
            f"{differs:.1e}" if differs else "0",
            f"{way.tolerance:.0e}",
            f"{found.seconds * 1e3:.1f}",
            f"{cost.at_once * 1e6:.0f}",
            f"{cost.one_by_one * 1e6:.0f}",
            "same" if differs <= way.tolerance else "DIFFERS",
        )
    out.print(table)
    return 1 if fails else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Do what is asked; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", choices=["linear", "forest"], default="linear")
    parser.add_argument("--ways", default=",".join(WAYS), help="default: all, which are %(default)s")
    parser.add_argument("--rows", type=int, default=500, help="observations that are explained; default 500")
    args = parser.parse_args(argv)
    ways = args.ways.split(",")
    if unknown := [name for name in ways if name not in WAYS]:
        parser.error(f"there is no way {unknown[0]!r}; there are {', '.join(WAYS)}")
    warnings.simplefilter("ignore", SlowFeatureWarning)  # of Elec2's dates: they are the same for all
    return same(args.model, ways, args.rows)


if __name__ == "__main__":
    sys.exit(main())

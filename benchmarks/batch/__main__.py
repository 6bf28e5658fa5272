"""Measure batch PFI and SAGE beside scikit-learn, shap, shapiq and sage-importance, in one process.

    python -m benchmarks.batch                       # a minute or two
    python -m benchmarks.batch --only forest linear
    python -m pip install --group benchmark          # what it is measured beside; else a row says that it is absent

Error is the root mean square over the features against the exact value of the same data, over three seeds. Processor
time is that of the whole process, model included. `to equal error` is what a method takes until its error is that of
our sampled one, over what that takes: time times the squared ratio of the errors, as the variance of a mean goes with
the inverse of the draws; bias that no draws remove is not in it. Times are what the machine was doing: compare within
a table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence

from benchmarks.batch.methods import METHODS, Row, absent, measured

from .subjects import SUBJECTS


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table in Markdown."""
    ours = {row.measure: row for row in rows if row.is_standard}
    lines = ["| importance | method | error | s | model calls | rows asked | to equal error |", "|" + " --- |" * 7]
    for row in rows:
        standard = ours[row.measure]
        ratio = row.seconds / standard.seconds * (row.error / standard.error) ** 2 if row.error > 1e-9 else 0.0
        cells = [
            row.measure,
            row.method,
            "0" if row.error <= 1e-9 else f"{row.error / row.scale:.2%}",
            f"{row.seconds:.3f}",
            f"{row.calls:,}",
            f"{row.rows:,}",
            f"{ratio:.1f}" if ratio else "exact",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Batch explainers beside others.")
    parser.add_argument("--only", nargs="+", choices=sorted(SUBJECTS), default=list(SUBJECTS))
    parser.add_argument("--rows", type=int, default=None, help="observations to explain, instead of each subject's own")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if missing := absent():
        print(f"not installed, so not in the tables: {', '.join(missing)} (pip install --group benchmark)\n")
    for name in arguments.only:
        subject = SUBJECTS[name](arguments.rows)
        print(f"**{name}**: {subject.title}, {len(subject.X)} rows, {subject.X.shape[1]} features, {subject.loss}\n")
        print(table(measured(subject, METHODS)), flush=True)
        print()


if __name__ == "__main__":
    main()

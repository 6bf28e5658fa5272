"""The streams and models whose events are compared: each stream is written to a CSV file."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from river.datasets import synth

from .checkout import HERE

ELEC2 = HERE / "benchmarks" / "data" / "elec2.csv.gz"


@dataclass(frozen=True)
class Case:
    """A stream (its file's name), and what the configuration says of the model that learns it."""

    stream: str
    settings: dict[str, Any]


def _class(name: str, **params: Any) -> dict[str, Any]:
    return {"class": name, "params": params}


_BOTH: dict[str, Any] = {"pfi": {}, "sage": {}}
_CHANGE = {"window": 500, "importances": ["pfi", "sage"]}
_OFTEN = {"every": 50, "reference_after": 1000}

CASES = {
    # As `attributary demo` has it, and SAGE.
    "demo": Case(
        "agrawal",
        {
            "model": _class("river.forest.ARFClassifier", n_models=10, seed=1),
            "alpha": 0.004,
            "explainers": {"pfi": {"n_samples": 2}, "sage": {}},
            "change": _CHANGE,
        },
    ),
    "elec2-forest": Case(
        "elec2",
        {
            "model": _class("river.forest.ARFClassifier", n_models=3, seed=1),
            "alpha": 0.01,
            "explainers": _BOTH,
            "change": _CHANGE,
        },
    ),
    "elec2-logistic": Case(
        "elec2-bits",
        {
            "model": [
                _class("river.preprocessing.StandardScaler"),
                _class("river.linear_model.LogisticRegression"),
            ],
            "alpha": 0.01,
            "explainers": {"pfi": {"removal": "product"}, "sage": {"reservoir": "uniform", "n_permutations": 2}},
            "change": _CHANGE,
        },
    ),
    "elec2-tree": Case(
        "elec2",
        {
            "model": _class("river.tree.HoeffdingTreeClassifier"),
            "alpha": 0.01,
            "explainers": {"pfi": {"removal": "observational"}, "sage": {"sampling": "independent"}},
            "change": _CHANGE,
        },
    ),
    "friedman-forest": Case(
        "friedman",
        {
            "model": _class("river.forest.ARFRegressor", n_models=3, seed=1),
            "alpha": 0.01,
            "explainers": _BOTH,
            "change": _CHANGE,
        },
    ),
    "friedman-linear": Case(
        "friedman",
        {
            "model": [_class("river.preprocessing.StandardScaler"), _class("river.linear_model.LinearRegression")],
            "alpha": 0.01,
            "loss": "absolute",
            "explainers": _BOTH,
            "change": _CHANGE,
        },
    ),
}


LIBRARY = {"library-forest": "agrawal", "library-tree": "friedman"}
"""Cases without a configuration, and their streams: explainers that publish no events, called directly."""


def stream_of(case: str) -> str:
    """Return the name of the stream of a case."""
    return LIBRARY[case] if case in LIBRARY else CASES[case].stream


def config_of(case: Case) -> dict[str, Any]:
    """Return the configuration of one case, with the keys that every release so far knows."""
    return {"models": {"m": {**case.settings, "publish": _OFTEN}}}


def write_stream(name: str, folder: Path, n_rows: int, elec2: Path) -> Path:
    """Write the rows of one stream as CSV, with the target in the last column, and return the file."""
    path = folder / f"{name}.csv"
    if name.startswith("elec2"):
        if not elec2.is_file():
            raise SystemExit(f"no data at {elec2}: give its path with --elec2, or leave its cases out with --cases")
        with gzip.open(elec2, "rt", encoding="utf-8") as lines:
            text = "".join(islice(lines, n_rows + 1))
        if name == "elec2-bits":  # River's logistic regression takes no text for a class
            text = text.replace(",UP\n", ",1\n").replace(",DOWN\n", ",0\n")
        path.write_text(text, encoding="utf-8")
        return path
    rows: Iterable[tuple[dict[str, Any], Any]]
    half = n_rows // 2
    if name == "agrawal":
        first = synth.Agrawal(classification_function=1, seed=1).take(half)
        rows = chain(first, synth.Agrawal(classification_function=2, seed=2).take(n_rows - half))
    else:
        drift = synth.FriedmanDrift(drift_type="gra", position=(half, half + n_rows // 4), seed=1)
        rows = drift.take(n_rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for n, (x, y) in enumerate(rows):
            if n == 0:
                writer.writerow([*x, "y"])
            writer.writerow([*x.values(), y])
    return path

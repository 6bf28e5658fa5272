"""The tables of docs/what-an-alert-means.md, made of `results.json`, which the command `page` writes."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harm import classes, frozen, numbers, quiet, words
from benchmarks.harm.feeding import Map
from benchmarks.harm.frozen import Trial
from benchmarks.tables import Table, filled

PAGE = Path(__file__).resolve().parents[2] / "docs" / "what-an-alert-means.md"
RESULTS = Path(__file__).with_name("results.json")
NOTHING = "nothing"

Results = Mapping[str, Any]


def collect(of: Map, full: bool) -> Results:
    """Run what the page shows; plain data."""
    seeds = 5 if full else 2
    return {
        "seeds": seeds,
        "two": summaries(frozen.trials_of(of, seeds)),
        "many": summaries(classes.trials_of(of, seeds)),
        "numbers": summaries(numbers.trials_of(of, seeds)),
        "first": [(row.what, row.found) for row in words.first_words(of, full, [])],
        "quiet": [(row.what, row.found) for row in quiet.rows(of, full, [])],
    }


def summaries(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """One for each model and kind, in the order of the trials."""
    found = []
    for model, kind in dict.fromkeys((t.model, t.kind) for t in trials):
        some = [t for t in trials if (t.model, t.kind) == (model, kind)]
        delays = [t.delay for t in some if math.isfinite(t.delay)]
        figures = some[0].figures
        found.append(
            {
                "model": model,
                "kind": kind,
                "auc": round(-figures.auc, 3),
                "loss": round(figures.loss, 3),
                "regret": round(figures.regret, 3),
                "told": dict(Counter(t.shifts[0].final if t.shifts else NOTHING for t in some)),
                "rows": round(median(delays)) if delays else None,
            }
        )
    return found


def tables(results: Results) -> list[Table]:
    """All of the page."""
    return [
        _of_kinds("two", results["two"], True),
        _of_kinds("many", results["many"], False),
        _of_kinds("numbers", results["numbers"], False),
        Table("first", "First words", ("what", "rows until the first word"), _pairs(results["first"])),
        Table("quiet", "False events", ("what", "found (95 % interval)"), _pairs(results["quiet"])),
    ]


def _pairs(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    return [tuple(row) for row in rows]


def _of_kinds(name: str, rows: Sequence[Mapping[str, Any]], with_auc: bool) -> Table:
    models = list(dict.fromkeys(row["model"] for row in rows))
    shown = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        same = [row for row in rows if row["kind"] == kind]
        told: Counter[str] = sum((Counter(row["told"]) for row in same), Counter())
        first = [row["rows"] for row in same if row["rows"] is not None]
        measures = ("auc", "regret") if with_auc else ("loss", "regret")
        shown.append(
            (
                kind,
                *("; ".join(_signed(row[measure]) for row in same) for measure in measures),
                ", ".join(f"{k} {n}" if len(told) > 1 else k for k, n in told.most_common()),
                "; ".join(map(str, first)) or "–",
            )
        )
    of = f" ({', '.join(models)})" if len(models) > 1 else ""
    header = ("what happened", "AUC" + of if with_auc else "loss", "regret", "told as (runs)", "rows until, median")
    return Table(name, name, header, shown)


def _signed(value: float) -> str:
    if value == 0:
        return "0"
    text = f"{abs(value):.3f}"
    return ("+" if value > 0 else "−") + (text[1:] if text.startswith("0.") else text)


def write(results: Results) -> None:
    """Keep the results, and put their tables into the page."""
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables(results)), encoding="utf-8")

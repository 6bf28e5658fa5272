"""The tables, for the screen and for the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.speed.accuracy import CASES, TARGET
from benchmarks.speed.growth import AXES, PAPER_FEATURES, PAPER_SLOPE, Axis, slopes
from benchmarks.speed.loops import KINDS
from benchmarks.speed.others import OTHERS
from benchmarks.speed.subjects import SUBJECTS_BY_NAME
from benchmarks.speed.table import NAIVE, OURS, REFERENCE
from benchmarks.tables import Table, as_markdown

Results = Mapping[str, Any]

NOT_INSTALLED = "not installed"
UNMEASURED = "–"

TARGET_KINDS = ("iPFI, M 10", "iSAGE, m 10")
"""Kinds that targets are for."""


def tables(results: Results) -> list[Table]:
    """Those of the modes that have been run."""
    made: dict[str, Callable[[Results], list[Table]]] = {
        "speed": speed, "others": others, "growth": growth, "accuracy": accuracy,
    }  # fmt: skip
    return [table for mode, make in made.items() if mode in results for table in make(results[mode])]


def times(value: float) -> str:
    """A ratio, with as many digits as mean something."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def spread(found: Mapping[str, float] | None, *, otherwise: str = UNMEASURED) -> str:
    """Median (quartiles)."""
    if found is None:
        return otherwise
    return f"{times(found['median'])} ({times(found['low'])}–{times(found['high'])})"


def small(value: float | None) -> str:
    """A difference of numbers that should be equal."""
    return UNMEASURED if value is None else "0" if value == 0 else f"{value:.0e}"


def speed(found: Results) -> list[Table]:
    """What it costs: in short, and in full."""
    return [_short(found), _full(found)]


def _reference(found: Results, of_kind: Mapping[str, Any], key: str = REFERENCE) -> str:
    return spread(of_kind.get(key), otherwise=UNMEASURED if found["reference"] else NOT_INSTALLED)


def _met(targets: Sequence[float] | None, of_kinds: Sequence[Mapping[str, Any]]) -> str:
    if targets is None:
        return ""
    measured = [
        (of_kind[OURS]["median"], most) for of_kind, most in zip(of_kinds, targets, strict=True) if OURS in of_kind
    ]
    if not measured:
        return ""
    return "met" if all(ratio <= most for ratio, most in measured) else "missed"


def _short(found: Results) -> Table:
    rows = []
    for name, of_subject in found["subjects"].items():
        subject = SUBJECTS_BY_NAME[name]
        of_kinds = [of_subject["kinds"].get(kind, {}) for kind in TARGET_KINDS]
        cells = [cell for of_kind in of_kinds for cell in (spread(of_kind.get(OURS)), _reference(found, of_kind))]
        targets = "" if subject.targets is None else " / ".join(f"{most:g}" for most in subject.targets)
        met = _met(subject.targets, of_kinds)
        rows.append((subject.title, f"{of_subject['alone_us']:,.0f}", *cells, targets and f"≤ {targets}", met))
    title = "Predict, explain and learn over predict and learn: processor time, median over blocks (quartiles)"
    header = ("model, stream", "alone, µs", *(c for k in TARGET_KINDS for c in (k, "iXAI")), "target", "")
    return Table("short", title, header, rows)


def _full(found: Results) -> Table:
    rows: list[tuple[str, ...]] = []
    for name, of_subject in found["subjects"].items():
        for kind in KINDS:
            if (of_kind := of_subject["kinds"].get(kind.name)) is None:
                continue
            rows.append(
                (
                    SUBJECTS_BY_NAME[name].title,
                    kind.name,
                    str(of_kind["evaluations"]),
                    spread(of_kind.get(OURS)),
                    spread(of_kind.get(NAIVE)),
                    _reference(found, of_kind),
                    _reference(found, of_kind, "speed_up"),
                    small(of_kind.get("difference")),
                )
            )
    title = "All kinds: ratio to the model alone, and how many times as fast as iXAI the whole loop is"
    header = ("model, stream", "explained", "rows", "ours", "naive loop", "iXAI", "faster", "difference")
    return Table("full", title, header, rows)


def others(found: Results) -> list[Table]:
    """What the other explainers cost."""
    rows = []
    for other in OTHERS:
        for name in other.subjects:
            if (of_subject := found["others"].get(name)) is None:
                continue
            of_one = of_subject["explained"][other.name]
            reference = UNMEASURED if other.reference is None else _reference(found, of_one)
            alone = f"{of_subject['alone_us']:,.0f}"
            rows.append((other.title, SUBJECTS_BY_NAME[name].title, alone, spread(of_one.get(OURS)), reference))
    title = "Predict, explain and learn over predict and learn: processor time of periods of 800, median (quartiles)"
    return [Table("others", title, ("explained", "model, stream", "alone, µs", "ours", "iXAI"), rows)]


def growth(found: Results) -> list[Table]:
    """A table for each thing that grows, and the slope per feature."""
    shown = [_axis(axis, found) for axis in AXES if axis.name in found["axes"]]
    if "features" not in found["axes"]:
        return shown
    of_columns = slopes(found["axes"]["features"])
    rows: list[tuple[str, ...]] = [("the paper", f"{PAPER_SLOPE:.3f}", "")]
    for column, title in ((OURS, "ours"), (REFERENCE, "iXAI")):
        rows.append((title, *(_slope(value) for value in of_columns[column].values())))
    title = "What each feature adds to the ratio, iPFI at M 1, ARF of 10: the slope of the line of least squares"
    header = ("", f"up to {PAPER_FEATURES} features", "all")
    return [*shown, Table("slope", title, header, rows)]


def _slope(value: float | None) -> str:
    return UNMEASURED if value is None else f"{value:.4f}"


def _axis(axis: Axis, found: Results) -> Table:
    points = found["axes"][axis.name]
    kinds = list(dict.fromkeys(kind for point in points for kind in point["kinds"]))
    rows = []
    for point in points:
        of_kinds = [point["kinds"].get(kind, {}) for kind in kinds]
        cells = [cell for one in of_kinds for cell in (spread(one.get(OURS)), _reference(found, one))]
        rows.append((f"{point['size']:,}", f"{point['alone_us']:,.0f}", *cells))
    header = (axis.name, "alone, µs", *(c for kind in kinds for c in (kind, "iXAI")))
    return Table(f"growth-{axis.name}", f"Ratio by {axis.title}", header, rows)


def accuracy(found: Results) -> list[Table]:
    """Error against exact values, and processor time."""
    rows, factors = [], []
    for case in CASES:
        if (one := found["cases"].get(case.name)) is None:
            continue
        what = (case.subject.title, case.kind.name)
        for column, title in ((OURS, "ours"), (REFERENCE, "iXAI")):
            if of_column := one["columns"].get(column):
                pairs = zip(of_column["error"], of_column["seconds"], strict=True)
                cells = (f"{error:.4f} in {1e3 * seconds:,.0f}" for error, seconds in pairs)
                each = f"{1e3 * one['each'][column]:.2f}"
                rows.append((*what, title, *cells, each, f"{one['slope'][column]:.2f}"))
        factor = one.get("factor")
        said = (f"{factor:,.0f}", "met" if factor >= TARGET else "missed") if factor else (NOT_INSTALLED, "")
        factors.append((*what, said[0], f"≥ {TARGET:.0f}", said[1]))
    n = next(iter(found["cases"].values()))["columns"][OURS]["n"]
    header = ("model, stream", "explained", "", *(f"{one} observations" for one in n), "each, ms", "slope")
    title = "Error of importance (root mean square over features and repeats), and processor milliseconds"
    last = "Processor time that iXAI needs for the error, over that of ours"
    return [
        Table("accuracy", title, header, rows),
        Table("factor", last, ("model, stream", "explained", "times", "target", ""), factors),
    ]


def fill(page: str, results: Results) -> str:
    """The page with these results: a table follows each line `<!-- table: name -->`, up to an empty line.

    Raises
    ------
    ValueError
        The page has no such line for a table.
    """
    modes_by_versions: dict[str, list[str]] = {}
    for name, mode in results.items():
        said = f"Python {mode['python']}, River {mode['river']}, numpy {mode['numpy']}, {mode['core']}"
        modes_by_versions.setdefault(said, []).append(name)
        if "subjects" in mode:
            n = sorted({of_subject["observations"] for of_subject in mode["subjects"].values()})
            page = re.sub(r"(<!-- measured -->).*", rf"\1 {n[0]} to {n[-1]} observations of each model.", page)
    if len(modes_by_versions) == 1:
        versions = f"{next(iter(modes_by_versions))}."
    else:
        versions = "; ".join(f"{', '.join(modes)}: {said}" for said, modes in modes_by_versions.items()) + "."
    page = re.sub(r"(<!-- versions -->).*", lambda found: f"{found[1]} {versions}", page)
    for table in tables(results):
        mark = f"<!-- table: {table.name} -->\n"
        before, found, after = page.partition(mark)
        if not found:
            raise ValueError(f"the page has no line {mark.strip()}")
        page = before + mark + as_markdown(table) + "\n\n" + after.partition("\n\n")[2]
    return page

"""The tables, for the screen and for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.change.report import Table, as_markdown
from benchmarks.speed.kinds import KINDS
from benchmarks.speed.subjects import SUBJECTS_BY_NAME
from benchmarks.speed.table import NAIVE, OURS, REFERENCE

Results = Mapping[str, Any]

NOT_INSTALLED = "not installed"
UNMEASURED = "–"

TARGET_KINDS = ("iPFI, M 10", "iSAGE, m 10")
"""Kinds that a target is for."""


def tables(results: Results) -> list[Table]:
    """Those of the modes that have been run."""
    made: dict[str, Callable[[Results], list[Table]]] = {"speed": speed}
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


def _met(target: float | None, of_kinds: Sequence[Mapping[str, Any]]) -> str:
    ratios = [of_kind[OURS]["median"] for of_kind in of_kinds if OURS in of_kind]
    if target is None or not ratios:
        return ""
    return "met" if max(ratios) <= target else "missed"


def _short(found: Results) -> Table:
    rows = []
    for name, of_subject in found["subjects"].items():
        subject = SUBJECTS_BY_NAME[name]
        of_kinds = [of_subject["kinds"].get(kind, {}) for kind in TARGET_KINDS]
        cells = [cell for of_kind in of_kinds for cell in (spread(of_kind.get(OURS)), _reference(found, of_kind))]
        target = "" if subject.target is None else f"≤ {subject.target:g}"
        rows.append((subject.title, f"{of_subject['alone_us']:,.0f}", *cells, target, _met(subject.target, of_kinds)))
    title = "Predict, explain and learn over predict and learn: processor time, median over blocks (quartiles)"
    header = ("model, stream", "alone, µs", *(c for k in TARGET_KINDS for c in (k, "iXAI")), "target", "")
    return Table("short", title, header, rows)


def _full(found: Results) -> Table:
    rows = []
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


def fill(page: str, results: Results) -> str:
    """The page with these results: a table follows each line `<!-- table: name -->`, up to an empty line.

    Raises
    ------
    ValueError
        The page has no such line for a table.
    """
    for table in tables(results):
        mark = f"<!-- table: {table.name} -->\n"
        before, found, after = page.partition(mark)
        if not found:
            raise ValueError(f"the page has no line {mark.strip()}")
        page = before + mark + as_markdown(table) + "\n\n" + after.partition("\n\n")[2]
    return page

"""The table: what is to be reached, what was found, and whether that reaches it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .runs import Record

LEAST, MOST = 0.92, 0.985
"""A share of intervals that hold, of those that should in .95."""
LEAST_AT_99 = 0.88
WIDEST = 1.3
"""Mean standard error over the spread between runs: intervals that are merely wide do not count."""
MOST_BIAS = 0.06
MOST_Z = 3.0

LOSSES = ("squared", "cross_entropy", "absolute")
NAMES = {"pfi": "iPFI", "sage": "iSAGE"}


class Row(NamedTuple):
    """A line of the table; `reached` is None where nothing was run."""

    what: str
    to_reach: str
    found: str
    reached: bool | None


NOT_RUN = "not run"


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Return the lines about intervals, bias and rules."""
    rows = []
    for loss in LOSSES:
        for explainer in NAMES:
            of_both = [r for r in records if (r.part, r.loss, r.explainer) == ("dependent", loss, explainer)]
            far = [r for r in of_both if _rho(r) == 0.99]
            rows.append(_near(f"AR(1), rho 0 to .9, {NAMES[explainer]}, {loss}", [r for r in of_both if r not in far]))
            rows.append(_far(f"AR(1), rho .99, {NAMES[explainer]}, {loss}", far))
    rows.append(_width([r for r in records if r.part == "dependent"]))
    for part, title in (("regimes", "regimes of 300"), ("seasons", "seasons of 1440")):
        for explainer in NAMES:
            of_part = [r for r in records if (r.part, r.explainer) == (part, explainer)]
            rows.append(_exact(f"{title}, {NAMES[explainer]}", of_part))
    for kind, title in (("label", "default loss for labels"), ("absolute", "absolute loss")):
        of_kind = [r for r in records if r.part == "rules" and r.world.endswith(kind)]
        rows.append(_unbiased(f"rules of bits, iSAGE, {title}", of_kind))
    return rows


def _rho(record: Record) -> float:
    return float(record.world.split(",")[0].removeprefix("AR "))


def _near(what: str, records: Sequence[Record]) -> Row:
    outside = [r for r in records if not LEAST <= r.held <= MOST]
    return _row(what, f"hold {LEAST} to {MOST}", records, _holds(records, outside), not outside)


def _far(what: str, records: Sequence[Record]) -> Row:
    silent = [r for r in records if not (LEAST_AT_99 <= r.held <= MOST or r.said >= 0.5)]
    said = sum(r.said >= 0.5 for r in records)
    found = f"{_holds(records, silent)}; {said} said by name" if records else ""
    return _row(what, f"hold {LEAST_AT_99} to {MOST}, or said by name", records, found, not silent)


def _width(records: Sequence[Record]) -> Row:
    ratios = [r.error / r.sd for r in records]
    found = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
    reached = max(ratios, default=0.0) <= WIDEST
    return _row("AR(1), all of these: standard error / spread of runs", f"at most {WIDEST}", records, found, reached)


def _exact(what: str, records: Sequence[Record]) -> Row:
    outside = [r for r in records if r.held < LEAST or abs(r.bias) > MOST_BIAS]
    biases = [100.0 * r.bias for r in records]
    found = f"{_holds(records, outside)}; bias {min(biases):+.1f} to {max(biases):+.1f} %" if records else ""
    to_reach = f"hold {LEAST}; bias at most {100 * MOST_BIAS:.0f} %"
    return _row(what, to_reach, records, found, not outside)


def _unbiased(what: str, records: Sequence[Record]) -> Row:
    if not records:
        return Row(what, f"z at most {MOST_Z:.0f}", NOT_RUN, None)
    worst = max(records, key=lambda r: abs(r.z))
    found = f"z up to {abs(worst.z):.1f} ({worst.loss}; {worst.feature} of {worst.world.rpartition(',')[0]})"
    return Row(what, f"z at most {MOST_Z:.0f}", found, abs(worst.z) <= MOST_Z)


def _holds(records: Sequence[Record], outside: Sequence[Record]) -> str:
    if not records:
        return ""
    held = [r.held for r in records]
    missed = f", {len(outside)} of {len(held)} outside" if outside else f", all {len(held)}"
    return f"{_share(min(held))} to {_share(max(held))}{missed}"


def _row(what: str, to_reach: str, records: Sequence[Record], found: str, reached: bool) -> Row:
    return Row(what, to_reach, found, reached) if records else Row(what, to_reach, NOT_RUN, None)


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def header() -> tuple[str, ...]:
    """Return the names of the columns of `lines`."""
    return ("what", "to reach", "found", "verdict")


def lines(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return the rows as texts."""
    verdicts: dict[Any, str] = {True: "reached", False: "missed", None: "–"}
    return [(r.what, r.to_reach, r.found, verdicts[r.reached]) for r in rows]

"""Plain-text report on sections of foreign topics, from sampled records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from attributary_explainers.wording import printable, show_count

from .attached import Tried, Waiting
from .attached_sample import Attached

_MOST_FEATURES = 20
_WIDTH = 28


def attached_lines(attached: Attached) -> Iterator[str]:
    """Yield the report: the records of each section, then label delays."""
    for tried in attached.tried.values():
        yield from tried_lines(tried)
    for name, waiting in attached.waiting.items():
        yield from waiting_lines(name, waiting)


def as_data(attached: Attached) -> dict[str, Any]:
    """Return the results as plain data, by section."""
    sections = {}
    for key, tried in attached.tried.items():
        said = asdict(tried)
        del said["found"], said["key"]
        sections[key] = said
    return {**sections, "waiting": {name: asdict(each) for name, each in attached.waiting.items()}}


def tried_lines(tried: Tried) -> Iterator[str]:
    """Yield the lines on a section: counts, and the first results by field."""
    if not tried.n_records:
        yield f"{tried.key}: NOT TRIED: {tried.where} has no record"
        return
    dead = sum(tried.dead_letters.values())
    records = f"{show_count(tried.n_records)} record{'' if tried.n_records == 1 else 's'} of {tried.where}"
    yield (
        f"{tried.key}: {records}: {show_count(tried.n_mapped)} mapped, {show_count(tried.n_passed_over)} passed over, "
        f"{show_count(dead)} dead letter{'' if dead == 1 else 's'}"
    )
    yield from _table(tried)
    if tried.time is not None:
        yield f"  {'time':<11} {tried.time}"
    for reason, n in tried.dead_letters.items():
        yield f"  {'dead letter':<11} {n} {'records' if n > 1 else 'record'}: {reason}: {tried.examples[reason]}"
    for caution in tried.cautions:
        yield f"  {'CAUTION':<11} {caution}"


def waiting_lines(name: str, waiting: Waiting) -> Iterator[str]:
    """Yield the lines on how long labels are waited for."""
    if waiting.delay_s is not None:
        n = "" if waiting.n_waiting is None else f"; about {show_count(waiting.n_waiting)} observations of a model wait"
        yield (
            f"labels.{name}: {show_count(waiting.n_joined)} observations of the sample have their label, "
            f"{_duration(waiting.delay_s)} later (the median){n}"
        )
    for caution in waiting.cautions:
        yield f"  {'CAUTION':<11} labels.{name}: {caution}"


def _table(tried: Tried) -> Iterator[str]:
    if not tried.shown:
        return
    features = list(dict.fromkeys(name for one in tried.shown for name in one.fields.get("x", ())))
    rows = [["", "read from", *(f"record {n + 1}" for n in range(len(tried.shown)))]]
    rows.append(["model", "", *(one.model_id for one in tried.shown)])
    for name in ("id", "time", "y", "y_pred"):
        if any(name in one.fields for one in tried.shown):
            text = tried.reads.get(name, "Kafka's timestamp" if name == "time" else "the format")
            rows.append([name, text, *(_shown(name, one.fields.get(name)) for one in tried.shown)])
    for name in features[:_MOST_FEATURES]:
        text = tried.reads.get(f"x.{name}", name)
        rows.append([f"x.{name}", text, *(_shown("x", one.fields.get("x", {}).get(name)) for one in tried.shown)])
    cells = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    for row in cells:
        yield f"  {'  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}".rstrip()
    if len(features) > _MOST_FEATURES:
        yield f"  and {len(features) - _MOST_FEATURES} more features"


def _cut(text: str) -> str:
    plain = printable(text)
    return plain if len(plain) <= _WIDTH else plain[: _WIDTH - 1] + "…"


def _shown(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name == "time":
        at = datetime.fromtimestamp(value / 1000, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return repr(value)


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"

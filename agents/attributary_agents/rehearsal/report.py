"""Plain-text report of a rehearsal: foreign topics, then models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from attributary_explainers.wording import printable, show_count

from .doubts import counts_by_reason
from .rehearsal import Rehearsal
from .sections import LabelDelay, Trial

_MOST_CLASSES, _MOST_FEATURES, _WIDTH = 6, 20, 28

HOW_TO_TRY = (
    "give rows of a file with --sample FILE, or the last records of the topic with --sample 50; or declare "
    "`features: {NAME: number, …}` in the model's configuration"
)

Fact = tuple[str, str]
"""What is told of, and what is told; a line of the report."""


def trial_lines(trial: Trial) -> Iterator[str]:
    """Yield the lines on a section: counts, and the first results by field."""
    if not trial.n_records:
        yield f"{trial.key}: NOT TRIED: {trial.where} has no record"
        return
    dead = sum(trial.dead_letters.values())
    yield (
        f"{trial.key}: {show_count(trial.n_records)} record{'' if trial.n_records == 1 else 's'} of {trial.where}: "
        f"{show_count(trial.n_mapped)} mapped, {show_count(trial.n_passed_over)} passed over, {show_count(dead)} dead "
        f"letter{'' if dead == 1 else 's'}"
    )
    yield from _table(trial)
    facts = [] if trial.time is None else [("time", trial.time)]
    yield from _lines([*facts, *_dead_letters(trial, "record"), *(("CAUTION", caution) for caution in trial.cautions)])


def delay_lines(name: str, delay: LabelDelay) -> Iterator[str]:
    """Yield the lines on how late the labels of a section come."""
    if delay.delay_s is not None:
        n = "" if delay.n_waiting is None else f"; about {show_count(delay.n_waiting)} observations of a model wait"
        size, unit = next((each for each in _UNITS if delay.delay_s >= 2 * each[0]), (1, "s"))
        yield (
            f"labels.{name}: {show_count(delay.n_joined)} observations of the sample have their label, "
            f"{delay.delay_s / size:.3g} {unit} later (the median){n}"
        )
    yield from _lines(("CAUTION", f"labels.{name}: {caution}") for caution in delay.cautions)


_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"))


def _table(trial: Trial) -> Iterator[str]:
    """Yield the first observations or labels side by side, a field a line."""
    if not trial.shown:
        return
    features = list(dict.fromkeys(name for one in trial.shown for name in one.fields.get("x", ())))
    rows = [["", "read from", *(f"record {n + 1}" for n in range(len(trial.shown)))]]
    rows.append(["model", "", *(one.model_id for one in trial.shown)])
    for name in ("id", "time", "y", "y_pred"):
        if any(name in one.fields for one in trial.shown):
            text = trial.reads.get(name, "Kafka's timestamp" if name == "time" else "the format")
            rows.append([name, text, *(_cell(name, one.fields) for one in trial.shown)])
    for name in features[:_MOST_FEATURES]:
        text = trial.reads.get(f"x.{name}", name)
        rows.append([f"x.{name}", text, *(_cell(name, one.fields.get("x", {})) for one in trial.shown)])
    cells = [
        [text if len(text := printable(cell)) <= _WIDTH else text[: _WIDTH - 1] + "…" for cell in row] for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        yield f"  {'  '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))}".rstrip()
    if len(features) > _MOST_FEATURES:
        yield f"  and {len(features) - _MOST_FEATURES} more features"


def _cell(name: str, fields: Mapping[str, Any]) -> str:
    value = fields.get(name)
    if name == "time" and "x" in fields:
        at = datetime.fromtimestamp(fields[name] / 1000, UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return "–" if value is None else repr(value)


def report_lines(rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the lines on a model: the verdict, then the facts behind it."""
    if rehearsal.problem is not None:
        said = "" if rehearsal.said is None else f" ({rehearsal.said})"
        yield f"{rehearsal.model_id}: cannot work: {rehearsal.problem}{said}"
    elif rehearsal.rows is None:
        sought = "" if rehearsal.sought is None else f"there is none in {rehearsal.sought}: "
        yield f"{rehearsal.model_id}: can be made; NOT TRIED with any observation: {sought}{HOW_TO_TRY}"
        yield from _lines([("evaluated", str(rehearsal.evaluated))])
        return
    elif rehearsal.untried is not None:
        yield f"{rehearsal.model_id}: NOT TRIED: {rehearsal.untried} ({rehearsal.rows})"
    elif not rehearsal.n_used:
        yield f"{rehearsal.model_id}: NOT TRIED: none of {rehearsal.n_rows} rows can be used ({rehearsal.rows})"
    else:
        yield f"{rehearsal.model_id}: works: {rehearsal.n_used} of {rehearsal.n_rows} rows used ({rehearsal.rows})"
    if rehearsal.registered is not None:
        yield from _lines([("registry", rehearsal.registered)])
    yield from _lines(_facts(rehearsal) if rehearsal.n_used else ())
    yield from _lines([*_dead_letters(rehearsal, "row"), *(("CAUTION", doubt) for doubt in rehearsal.doubts)])


def _lines(facts: Iterator[Fact] | list[Fact] | tuple[()]) -> Iterator[str]:
    return (f"  {name:<11} {text}" for name, text in facts)


def _dead_letters(of: Rehearsal | Trial, what: str) -> Iterator[Fact]:
    for reason, n in of.dead_letters.items():
        yield "dead letter", f"{n} {what}{'s' if n > 1 else ''}: {reason}: {of.examples.get(reason, '')}"


def _facts(rehearsal: Rehearsal) -> Iterator[Fact]:
    label = f"{rehearsal.label:.4g}" if isinstance(rehearsal.label, float) else repr(rehearsal.label)
    of = "" if rehearsal.label is None else f", whose label is {label}"
    yield "prediction", f"{_prediction(rehearsal.prediction)} for the last row{of}"
    if rehearsal.loss_value is not None:
        name, loss = ("score", "") if rehearsal.is_score else ("loss", f" ({rehearsal.loss})")
        yield name, f"{rehearsal.loss_value:.4g} on average{loss}, because {rehearsal.why}"
    if rehearsal.positive is not None:
        yield "positive", rehearsal.positive
    skipped = [f"; {name} skipped {counts_by_reason(counts)}" for name, counts in rehearsal.skipped.items()]
    yield "explained", f"{rehearsal.n_explained} rows{''.join(skipped)}"
    yield "evaluated", str(rehearsal.evaluated)
    if rehearsal.guard is not None:
        about = rehearsal.guarded_from
        rate = "" if about is None else f"; at this rate guarded from about observation {show_count(about)} on"
        yield "loss watch", rehearsal.guard.sentence + rate
    if (step_s := rehearsal.step_s) is not None:
        duration = f"{1e3 * step_s:.3g} ms" if step_s >= 0.001 else f"{1e6 * step_s:.3g} µs"
        yield "one step", f"{duration} (decode, predict, explain, learn; the median)"
    if (n := rehearsal.state_bytes) is not None:
        size = f"{n / 1e6:.3g} MB" if n >= 1_000_000 else f"{n / 1000:.3g} kB"
        first = [name for name in ("prediction", "events", "explainers") if name in rehearsal.restored]
        equal = f"{', '.join(first)} and {len(rehearsal.restored) - len(first)} other parts"
        yield "state", f"{size}, stored and restored; one step later equal in {equal}"


def _prediction(prediction: Any) -> str:
    if prediction is None:
        return "none yet"
    if not isinstance(prediction, dict):
        return f"{prediction:.4g}"
    most = sorted(prediction.items(), key=lambda item: -item[1])
    more = f" and {len(most) - _MOST_CLASSES} more" if len(most) > _MOST_CLASSES else ""
    return ", ".join(f"{label!r} {p:.3g}" for label, p in most[:_MOST_CLASSES]) + more

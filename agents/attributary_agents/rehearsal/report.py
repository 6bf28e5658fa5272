"""Plain-text report of a rehearsal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attributary_explainers.wording import show_count

from .finding import Rehearsal

_MOST = 6

HOW_TO_TRY = (
    "give rows of a file with --sample FILE, or the last records of the topic with --sample 50; or declare "
    "`features: {NAME: number, …}` in the model's configuration"
)


def report_lines(found: Rehearsal) -> Iterator[str]:
    """Yield the lines of the report: the verdict, then the facts behind it."""
    if found.problem is not None:
        yield f"{found.model_id}: cannot work: {found.problem}{_said(found)}"
    elif found.rows is None:
        yield f"{found.model_id}: can be made; NOT TRIED with any observation: {_how_to_try(found)}"
        yield f"  {'evaluated':<11} {found.evaluated}"
        return
    elif found.untried is not None:
        yield f"{found.model_id}: NOT TRIED: {found.untried} ({found.rows})"
    elif not found.n_used:
        yield f"{found.model_id}: NOT TRIED: none of {found.n_rows} rows can be used ({found.rows})"
    else:
        yield f"{found.model_id}: works: {found.n_used} of {found.n_rows} rows used ({found.rows})"
    for name, text in _facts(found):
        yield f"  {name:<11} {text}"


def _facts(found: Rehearsal) -> Iterator[tuple[str, str]]:
    if found.registered is not None:
        yield "registry", found.registered
    if found.n_used:
        prediction = "none yet" if found.prediction is None else _shown(found.prediction)
        label = "" if found.label is None else f", whose label is {_label(found.label)}"
        yield "prediction", f"{prediction} for the last row{label}"
    if found.loss_value is not None and found.n_used:
        if found.is_score:
            yield "score", f"{found.loss_value:.4g} on average, because {found.why}"
        else:
            yield "loss", f"{found.loss_value:.4g} on average ({found.loss}), because {found.why}"
    if found.positive is not None:
        yield "positive", found.positive
    if found.n_used:
        yield (
            "explained",
            f"{found.n_explained} rows"
            + "".join(f"; {name} skipped {_counted(reasons)}" for name, reasons in found.skipped.items()),
        )
        yield "evaluated", str(found.evaluated)
    if found.guard is not None and found.n_used:
        about = found.guarded_from
        rate = "" if about is None else f"; at this rate guarded from about observation {show_count(about)} on"
        yield "loss watch", found.guard.sentence + rate
    if found.step_s is not None and found.n_used:
        yield "one step", f"{_duration(found.step_s)} (decode, predict, explain, learn; the median)"
    if found.state_bytes is not None and found.n_used:
        yield "state", f"{_size(found.state_bytes)}, stored and restored; one step later {_restored(found.restored)}"
    for reason, n in found.dead_letters.items():
        yield "dead letter", f"{n} {'rows' if n > 1 else 'row'}: {reason}: {found.examples.get(reason, '')}"
    for doubt in found.doubts:
        yield "CAUTION", doubt


def _how_to_try(found: Rehearsal) -> str:
    return HOW_TO_TRY if found.sought is None else f"there is none in {found.sought}: {HOW_TO_TRY}"


def _said(found: Rehearsal) -> str:
    return "" if found.said is None else f" ({found.said})"


def _restored(parts: list[str]) -> str:
    first = [name for name in ("prediction", "events", "explainers") if name in parts]
    return f"equal in {', '.join(first)} and {len(parts) - len(first)} other parts"


def _shown(prediction: Any) -> str:
    if not isinstance(prediction, dict):
        return f"{prediction:.4g}"
    most = sorted(prediction.items(), key=lambda item: -item[1])
    more = f" and {len(most) - _MOST} more" if len(most) > _MOST else ""
    return ", ".join(f"{label!r} {p:.3g}" for label, p in most[:_MOST]) + more


def _label(label: Any) -> str:
    return f"{label:.4g}" if isinstance(label, float) else repr(label)


def _counted(reasons: dict[str, int]) -> str:
    return ", ".join(f"{n} ({reason.replace('_', ' ')})" for reason, n in reasons.items())


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.3g} ms" if seconds >= 0.001 else f"{1_000_000 * seconds:.3g} µs"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.3g} MB" if n_bytes >= 1_000_000 else f"{n_bytes / 1000:.3g} kB"

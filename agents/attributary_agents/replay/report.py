"""Writes the report of a replay: one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from attributary_explainers.ranking import BAND
from attributary_explainers.wording import show_count

from ..private_files import write_private
from .history import loss_text
from .report_axes import Line, Point
from .report_data import Explainer, Model, read_events
from .report_loss import loss_marks, loss_shifts
from .report_page import HEAD, escape, figure, number, page
from .report_quality import quality_charts
from .report_svg import Bars, Mark, bar_chart, line_chart

_FAR = 5.0
"""Times the loss of the baseline, beyond which an importance says more about the values that are drawn."""
MAX_COLLAPSED = 40
"""Features within noise that the text about a change names; the others are counted."""


@dataclass(frozen=True)
class Rows:
    """Counts what became of the rows of a replay.

    Attributes
    ----------
    n
        Rows that were read.
    n_explained
        Those that a model predicted and learnt.
    refused
        Reason to the rows that are dead letters for it.
    """

    n: int
    n_explained: int
    refused: Mapping[str, int]


def write_report(
    path: Path,
    importances: Path,
    changes: Path,
    rows: Rows | None = None,
    thresholds: Mapping[str, float] | None = None,
) -> None:
    """Write the report.

    Parameters
    ----------
    path
        HTML file to write.
    importances, changes
        Files of a replay: a JSON event per line.
    rows
        What became of the rows; None where that is not known.
    thresholds
        Model id to the discrepancy above which it counts as another model.
    """
    models = read_events(importances, changes)
    for model_id, threshold in (thresholds or {}).items():
        if model_id in models:
            models[model_id].threshold = threshold
    sections = "".join(_section(i, model_id, model) for i, (model_id, model) in enumerate(models.items()))
    if not sections:
        sections = (
            "<section><h2>Nothing to show</h2><p>The replay published neither importances nor changes. "
            "An importance event needs <code>publish.min_observations</code> or <code>publish.every</code> "
            "explained observations; records that could not be used are in the dead letters.</p></section>"
        )
    title = f"Attributary: {', '.join(models)}" if models else "Attributary"
    sections = _counts(rows) + sections
    write_private(path, page(title, HEAD + sections if models else sections).encode())


def _counts(rows: Rows | None) -> str:
    if rows is None:
        return ""
    text = f"{show_count(rows.n)} rows: {show_count(rows.n_explained)} predicted and learnt"
    if not rows.refused:
        return f'<p class="dim">{text}.</p>'
    reasons = ", ".join(f"{escape(reason)} {show_count(n)}" for reason, n in rows.refused.items())
    refused = f"<b>{show_count(sum(rows.refused.values()))} refused</b> ({reasons})"
    return f'<p class="dim">{text}, {refused}: each is in dead-letters.jsonl, with what is wrong.</p>'


def _section(i: int, model_id: str, model: Model) -> str:
    marks = [
        Mark(n, change["detected_at"], change["observation"], f"change-{i}-{n}")
        for n, change in enumerate(model.changes, start=1)
    ]
    of_loss = loss_marks(i, model.loss_shifts, len(marks))
    x_range = (0.0, float(model.last))
    baseline = next((row[2] for row in reversed(model.losses.points) if row[2] is not None), None)
    charts = [_importance(name, explainer, x_range, marks, baseline) for name, explainer in model.explainers.items()]
    with_losses = sorted([*marks, *of_loss], key=lambda mark: mark.at)
    charts.append(_losses(model, x_range, with_losses))
    charts += quality_charts(model, x_range, with_losses)
    charts.append(_discrepancy(model, x_range, marks))
    facts = [f"up to observation {number(model.last)}", *map(escape, model.quality_texts)]
    facts.append(_counted(len(model.changes), "change"))
    if model.n_alarms:
        facts.append(f"{_counted(model.n_alarms, 'alarm')}, {model.n_not_confirmed} not confirmed")
    if model.shifts:
        n_shifts = sum(shift["event"] == "importance_shift" for shift in model.shifts)
        facts.append(_counted(n_shifts, "shift") + " of importance")
    if model.loss_shifts:
        facts.append(_counted(len(model.loss_shifts), "shift") + " of the loss")
    for name, explainer in model.explainers.items():
        *_, (_, values) = explainer.series.points
        best = max(zip(explainer.shown, values, strict=True), key=lambda pair: pair[1][0] or 0.0, default=None)
        if best is not None:
            facts.append(f"most important now ({escape(name)}): <b>{escape(best[0], 40)}</b>")
    cards = "".join(_card(mark, change) for mark, change in zip(marks, model.changes, strict=True))
    return (
        f'<section><h2>{escape(model_id)} <small>version {escape(model.version)}</small></h2><ul class="facts">'
        f"{''.join(f'<li>{fact}</li>' for fact in facts)}</ul>{''.join(charts)}"
        f"{'<h3>Changes</h3>' if cards else ''}{cards}"
        f"{_sentences('Shifts of importance', [shift['sentence'] for shift in model.shifts])}"
        f"{_sentences('Gone back to an earlier state', model.recoveries)}"
        f"{loss_shifts(model.loss_shifts, of_loss)}</section>"
    )


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _sentences(title: str, sentences: list[str]) -> str:
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<h3>{title}</h3><ul>{items}</ul>" if items else ""


def _importance(
    name: str, explainer: Explainer, x_range: tuple[float, float], marks: list[Mark], baseline: float | None
) -> str:
    series = explainer.series.points
    lines = [
        Line(feature, [(at, *values[k]) for at, values in series], colour)
        for k, (feature, colour) in enumerate(explainer.shown.items())
    ]
    hidden = len(explainer.total) - len(lines)
    caption = f"Higher: the model relies on it more. Unit: {escape(explainer.loss)}. Band: the 95 % interval."
    if hidden:
        caption += f" The {len(lines)} largest features, over the stream or at its end; <b>{hidden} not shown</b>."
    far = [feature for feature in explainer.shown if abs(explainer.latest.get(feature, 0.0)) > _FAR * (baseline or inf)]
    if far:
        caption += (
            f" <b>{', '.join(escape(feature, 40) for feature in far)}</b>: far more than a model without features "
            "loses. The values that are drawn in its place are far from where the model is in use, as those of a "
            "clock or a counter are; it says no more than that the model needs the feature."
        )
    title = f"Importance by {escape(name.upper())}"
    return figure(title, caption, line_chart(title, lines, x_range, marks))


def _losses(model: Model, x_range: tuple[float, float], marks: list[Mark]) -> str:
    rows = model.losses.points
    model_loss: list[Point] = [(row[0], row[1], None) for row in rows]
    baseline: list[Point] = [(row[0], row[2], None) for row in rows]
    lines = [Line("model", model_loss, 0), Line("baseline", baseline, 1)]
    if all(row[1] is None for row in rows):
        return ""
    unit = next(explainer.loss for explainer in model.explainers.values())
    caption = f"Lower is better. Baseline: the mean prediction, which knows no feature. Unit: {escape(unit)}."
    return figure("Loss", caption, line_chart("Loss", lines, x_range, marks))


def _discrepancy(model: Model, x_range: tuple[float, float], marks: list[Mark]) -> str:
    points: list[Point] = [(row[0], row[3], None) for row in model.losses.points]
    dots = [(change["observation"], change["discrepancy"]) for change in model.changes]
    if not dots and not any(y for _, y, _ in points):
        return ""  # a model that does not learn is its own reference
    level = ("threshold", model.threshold) if model.threshold is not None else None
    caption = "How far predictions are from the reference model's; it starts anew with each reference."
    caption += " Dots: measured at the change." if dots else ""
    return figure(
        "Discrepancy", caption, line_chart("Discrepancy", [Line("discrepancy", points, 0)], x_range, marks, level, dots)
    )


def _card(mark: Mark, change: dict[str, Any]) -> str:
    parts = [_comparison(method, found) for method, found in change["importances"].items()]
    return (
        f'<article id="{mark.href}"><h4><span class="badge">{mark.number}</span> {escape(change["sentence"])}</h4>'
        f'<p class="dim">{_facts(change)}</p>{"".join(parts)}</article>'
    )


def _facts(change: dict[str, Any]) -> str:
    route, detector = change["route"], change["detector"]
    window = number(change["window"])
    if route == "version":
        before, now = change["model_version_before"], change["model_version"]
        fact = f"Version {escape(now)} took over from {escape(before)} at {number(change['detected_at'])}"
        data = f"both compared on the same {window} observations after"
    else:
        by = f"{escape(detector['name'])} on {escape(detector['signal'])}" if route == "detector" and detector else ""
        raised = "Seen by a check" if route == "check" else f"Alarm of {by or 'the discrepancy'}"
        fact = f"{raised} at {number(change['detected_at'])}"
        data = f"reference model of {number(change['reference_at'])}; examined on {window} observations"
    return f"{fact}; {data}.{_losses_of(change['losses'])}"


def _losses_of(losses: dict[str, Any] | None) -> str:
    """Return the losses that a verdict rests on, with their 95 % intervals."""
    if losses is None:
        return ""
    sides = {"reference_then": "reference then", "reference_now": "reference now", "model_now": "model now"}
    parts = [
        f"{name} {number(losses[side]['loss'])} ({number(losses[side]['low'])} to {number(losses[side]['high'])})"
        for side, name in sides.items()
        if losses[side] is not None
    ]
    return f" Loss on what had not been learnt, in {escape(loss_text(losses))}: {', '.join(parts)}."


def _comparison(method: str, found: dict[str, Any]) -> str:
    features: dict[str, dict[str, Any]] = found["features"]
    named = [_bars(name, feature) for name, feature in features.items() if feature["significant"]]
    rest = [_bars(name, feature) for name, feature in features.items() if not feature["significant"]]
    before, after = (number(found[side]) for side in ("before_loss", "after_loss"))
    body = (
        f'<p class="legend"><b>{escape(method.upper())}</b> in {escape(loss_text(found))}: '
        '<i class="before"></i> before <i class="after"></i> after; '
        f"mean loss on the observations of each: {before}, {after}</p>"
    )
    if named:
        body += f'<div class="scroll">{bar_chart("Significant", named)}</div>'
    if rest:
        more = f"<p>and {len(rest) - MAX_COLLAPSED} more</p>" if len(rest) > MAX_COLLAPSED else ""
        chart = bar_chart("Within noise", rest[:MAX_COLLAPSED])
        plural = "feature" if len(rest) == 1 else "features"
        body += f'<details><summary>{len(rest)} {plural} within noise</summary><div class="scroll">{chart}</div>'
        body += f"{more}</details>"
    return body


def _bars(name: str, feature: dict[str, Any]) -> Bars:
    note = f"{number(feature['before'])} → {number(feature['after'])}"
    before, after = feature["before_rank"], feature["after_rank"]
    if before and after:
        note += f"   rank {before}" + (f" → {after}" if after != before else "")
    errors = [feature[f"{side}_std_error"] for side in ("before", "after")]
    sides = [
        (feature[side], None if error is None else BAND * error)
        for side, error in zip(("before", "after"), errors, strict=True)
    ]
    return Bars(name, sides[0], sides[1], note)

"""Writer of a suggestion as YAML, with the reason beside each line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from attributary_explainers.wording import printable

from .fields import expression_of
from .forms import Form
from .rules import describe
from .suggestion import Suggestion, name_of

UNKNOWN = "???"
"""What stands where somebody has to say something."""

_COLUMN = 48
"""Reasons begin here, where the line leaves room."""


def write_suggestion(found: Suggestion, brokers: Sequence[str] | None, models: Sequence[str] = ()) -> str:
    """Return the suggestion as YAML.

    Parameters
    ----------
    brokers
        Of a whole configuration; None for the sections alone, where there is a configuration.
    models
        Ids of the models that the configuration has.
    """
    lines = list(_whole(found, brokers, models))
    return "\n".join(_beside(line, reason) for line, reason in lines) + "\n"


def _beside(line: str, reason: str) -> str:
    if not reason:
        return line
    if not line.strip():
        return f"{line}# {printable(reason)}"
    return f"{line:<{_COLUMN}}  # {printable(reason)}"


Line = tuple[str, str]
"""A line of YAML and the reason beside it; blanks alone and a reason are a line of comment."""


def _whole(found: Suggestion, brokers: Sequence[str] | None, models: Sequence[str]) -> Iterator[Line]:
    if brokers is not None:
        yield f"kafka: {{brokers: {scalar(list(brokers))}}}", ""
    yield "sources:", f"by {found.n_records} records of {found.topic}"
    yield f"  {scalar(found.name)}:", ""
    for line, reason in _source(found, models):
        yield f"    {line}", reason
    if found.late is not None:
        yield "labels:", f"by records of {found.late.topic}"
        yield f"  {scalar(_label_name(found))}:", ""
        for line, reason in _labels(found, models):
            yield f"    {line}", reason
    if brokers is not None:
        yield "models:", ""
        yield from _model(found)


def _label_name(found: Suggestion) -> str:
    assert found.late is not None
    name = name_of(found.late.topic)
    return name if name != found.name else f"{name}-labels"


def _form(form: Form) -> Iterator[Line]:
    reasons = dict(form.reasons)
    if form.format != "json":
        yield f"format: {form.format}", reasons.get("format", "")
    if form.unwrap and not form.keys:
        yield "unwrap: debezium", reasons.get("unwrap", "")
    elif form.record:
        yield f"record: {scalar(expression_of(form.record))}", reasons.get("record", "")
    for key, value in form.keys:
        yield f"{key}: {scalar(value)}", "as unwrap: debezium has it"


def _source(found: Suggestion, models: Sequence[str]) -> Iterator[Line]:
    yield f"topic: {scalar(found.topic)}", ""
    yield from _form(found.form)
    yield from _model_line(found, models)
    for role, guess in (("id", found.id), ("time", found.time)):
        if guess is not None:
            yield f"{role}: {scalar(guess.field.expression)}", guess.reason
    if found.late is not None and found.id is None and not found.form.has_id:
        yield f"id: {UNKNOWN}", "say which field is the id that labels have, too"
    if found.y is not None:
        yield f"y: {scalar(found.y.field.expression)}", found.y.reason
    elif found.late is None and not found.form.is_inference:
        yield f"y: {UNKNOWN}", f"no field is called like a label: {_candidates(found)} (--y), or --labels TOPIC"
    if found.y_pred is not None:
        yield f"y_pred: {scalar(found.y_pred.field.expression)}", found.y_pred.reason
    yield from _features(found)


def _candidates(found: Suggestion) -> str:
    names = [one.shown for one in found.features]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"say which of {', '.join(names[:12])}{more}" if names else "say where it is"


def _model_line(found: Suggestion, models: Sequence[str]) -> Iterator[Line]:
    if found.form.is_inference and found.form.model is not None:
        yield f'model: "{{{found.form.model[0]}}}"', found.form.model[1]
        return
    if len(models) > 1:
        yield f"model: {scalar(models[0])}", f"or another of {', '.join(models[1:6])}"
    if found.model is not None:
        expression, reason = found.model
        yield f"# model: {scalar(f'{found.name}-{{{expression}}}')}", f"for one model each, {found.name}-*: {reason}"


def _features(found: Suggestion) -> Iterator[Line]:
    for one, said in found.leaks:
        yield "", f"CAUTION {one.shown}: {said}: left out, unless it is known before the label"
    for one, reason in found.left_out:
        yield "", f"left out: {one.shown}: {reason}"
    out = [one for one, _ in (*found.leaks, *found.left_out) if one.is_plain and len(one.path) == 1]
    nested = [one for one in found.features if len(one.path) > 1]
    if found.form.is_inference and not out:
        return
    if nested or not found.features:
        yield "x:", "one line each, because some are in objects" if nested else "nothing was found"
        for one in found.features:
            yield f"  {scalar(one.name)}: {scalar(one.expression)}", describe(one)
    elif out:
        yield f"x: {{all_but: {scalar([one.name for one in out])}}}", f"{len(found.features)} features: {_names(found)}"
    else:
        yield "", f"x: all other fields: {_names(found)}"
    if found.casts:
        yield f"cast: {scalar(found.casts)}", "values of several kinds"


def _names(found: Suggestion) -> str:
    return textwrap.shorten(", ".join(one.shown for one in found.features), 200, placeholder=" …")


def _labels(found: Suggestion, models: Sequence[str]) -> Iterator[Line]:
    late = found.late
    assert late is not None
    yield f"topic: {scalar(late.topic)}", ""
    yield from _form(late.form)
    if len(models) > 1:
        yield f"model: {scalar(models[0])}", ""
    yield (
        f"id: {UNKNOWN if late.id is None else scalar(late.id.field.expression)}",
        ("no field has another value in every record" if late.id is None else late.id.reason),
    )
    if late.time is not None:
        yield f"time: {scalar(late.time.field.expression)}", late.time.reason
    yield (
        f"y: {UNKNOWN if late.y is None else scalar(late.y.field.expression)}",
        ("no field is called like a label" if late.y is None else late.y.reason),
    )
    yield f"ttl: {late.ttl}", late.ttl_reason


def _model(found: Suggestion) -> Iterator[Line]:
    texts = any("text" in one.kinds for one in found.features)
    kind = "Regressor" if found.predicts_numbers else "Classifier"
    if found.label is None:
        reason = "HoeffdingTreeRegressor, where the label is a number"
    else:
        what = describe(found.label)
        reason = f"the label is a {'number' if found.predicts_numbers else 'class'}: {what}"
    # Linear models in the leaves take numbers only.
    params = ", params: {leaf_prediction: mean}" if kind == "Regressor" and texts else ""
    mode = ""
    name = scalar(found.name)
    if found.form.is_inference:
        values = [] if found.y_pred is None else found.y_pred.field.there
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        kind, mode, reason = "Regressor" if numbers else "Classifier", "mode: mirror, ", "no labels: it learns y_pred"
        name = '"*"' if found.form.model is not None else name
    yield f"  {name}: {{{mode}model: {{class: river.tree.HoeffdingTree{kind}{params}}}}}", reason


def scalar(value: Any) -> str:
    """Return a text, list or mapping as YAML in a single line."""
    written = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False)
    return written.strip()[1:-1]


def as_data(found: Suggestion, brokers: Sequence[str] | None, models: Sequence[str] = ()) -> dict[str, Any]:
    """Return the suggestion as plain data.

    It has the configuration, the reason of each line, and whether it is complete.
    """
    lines = list(_whole(found, brokers, models))
    text = "\n".join(line for line, _ in lines if line.strip())
    return {
        "complete": found.is_complete,
        "configuration": yaml.safe_load(text),
        "reasons": [{"line": line.strip(), "reason": reason} for line, reason in lines if reason],
    }

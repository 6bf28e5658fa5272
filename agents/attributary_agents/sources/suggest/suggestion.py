"""Suggestion of how to attach a topic: YAML, with reasons."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import orjson
import yaml

from attributary_explainers.wording import did_you_mean, printable, show_names

from ...errors import AttributaryError
from ..formats.base import Decoded
from ..records import OriginRecord
from ..samples import Sample
from .fields import (
    Field,
    Guess,
    expression_of,
    fields_of,
    guess_id,
    guess_ids,
    guess_label,
    guess_model,
    guess_prediction,
    guess_time,
    leak,
    no_feature,
)

UNKNOWN = "???"
"""What stands where somebody has to say something."""

_COLUMN = 48
"""Reasons begin here, where the line leaves room."""

Line = tuple[str, str]
"""A line of YAML and the reason beside it; blanks alone and a reason are a line of comment."""


def guess_format(records: Sequence[OriginRecord]) -> tuple[str, str]:
    """Return the format of records and the reason for it.

    It is `framed` where a schema registry has to tell the format.
    """
    with_value = [record for record in records if record.value]
    headers = [{name.lower(): value or b"" for name, value in record.headers} for record in with_value]
    if with_value and all("ce_specversion" in each for each in headers):
        if all(b"inference" in each.get("ce_type", b"") for each in headers):
            return "open-inference", "headers of CloudEvents, whose type is an inference"
        return "cloudevents", "headers of CloudEvents"
    if with_value and all(b"application/cloudevents" in each.get("content-type", b"") for each in headers):
        return "cloudevents", "the content type"
    raw = [record.value or b"" for record in with_value]
    if raw and all(value[:1] == b"\x00" and len(value) > 5 for value in raw):
        return "framed", f"byte 0 and schema id {int.from_bytes(raw[-1][1:5], 'big')}"
    objects = [value for each in raw if isinstance(value := _json(each), dict)]
    if objects and all(map(_is_inference, objects)):
        return "open-inference", "inputs or outputs of a model"
    return "json", f"{len(objects)} of {len(with_value)} values are JSON objects"


def _json(value: bytes) -> Any:
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return None


def _is_inference(value: dict[str, Any]) -> bool:
    lists = [value[name] for name in ("inputs", "outputs") if name in value]
    return bool(lists) and all(
        isinstance(tensors, list) and all(isinstance(tensor, dict) and "datatype" in tensor for tensor in tensors)
        for tensors in lists
    )


class Topic:
    """Sampled records of a topic as roles read them, with guesses.

    Attributes
    ----------
    lines
        The beginning of its section: topic, format and envelope.
    is_inference
        Whether requests and responses of a model are separate records, which have no labels.
    has_id, has_time
        Whether the format or the envelope says these.
    fields, keys
        Fields of the objects that roles read, and the records' keys as text, in the order of each partition.
    id, time, y, y_pred
        The fields that are guessed to have these roles.
    model
        An expression that may tell models apart, and the reason.
    """

    def __init__(self, sample: Sample, format_name: str, reason: str) -> None:
        self.topic, self.n_records = sample.where, len(sample.records)
        self.is_inference = format_name == "open-inference"
        self.has_id = self.has_time = format_name in ("cloudevents", "open-inference")
        self.lines: list[Line] = [(f"topic: {scalar(sample.where)}", "")]
        if format_name != "json":
            self.lines.append((f"format: {format_name}", reason))
        self._is_debezium, self._record = False, tuple[str, ...]()
        self._find_envelope([each.value for decoded in sample.decoded for each in decoded])
        self.keys: list[str | None] = []
        objects: list[dict[str, Any]] = []
        places: list[tuple[str, int]] = []
        pairs = zip(sample.records, sample.decoded, strict=True)
        for record, decoded in sorted(pairs, key=lambda pair: (pair[0].topic, pair[0].partition, pair[0].offset)):
            for value in (value for each in decoded if (value := self._object(each)) is not None):
                objects.append(value)
                places.append((record.topic, record.partition))
                self.keys.append(None if record.key is None else record.key.decode("utf-8", "replace"))
        self.fields = fields_of(objects, places)
        self.id: Guess | None = None
        self.time = None if self.has_time else guess_time(self.fields)
        self.y: Guess | None = None
        self.y_pred: Guess | None = None
        self.model: tuple[str, str] | None = None
        if self.is_inference:
            self._read_outputs(sample)

    @property
    def name(self) -> str:
        """The name of the section: the last part of the topic's."""
        last = re.split(r"[./\\]", re.sub(r"\.jsonl?(\.gz)?$", "", self.topic))[-1]
        return re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:100] or "source"

    @property
    def rest(self) -> list[Field]:
        """The fields that have no role yet."""
        taken = [id(guess.field) for guess in (self.id, self.time, self.y, self.y_pred) if guess is not None]
        return [field for field in self.fields if id(field) not in taken]

    def _find_envelope(self, values: Sequence[dict[str, Any]]) -> None:
        if not values or self.is_inference:
            return
        if all(set(value) == {"schema", "payload"} for value in values):
            self._is_debezium = any(_is_change(value["payload"]) for value in values)
            self._record = ("payload", "after") if self._is_debezium else ("payload",)
            why = "schema and payload, as Connect's JSON converter writes them"
            if self._is_debezium:
                why = "Debezium's envelope below payload, as Connect's JSON converter writes it with schemas"
            self.lines.append((f"record: {scalar(expression_of(self._record))}", why))
            for key, value in _BELOW_PAYLOAD.items() if self._is_debezium else ():
                self.lines.append((f"{key}: {scalar(value)}", "as unwrap: debezium has it"))
        elif any(map(_is_change, values)):
            self._is_debezium, self._record = True, ("after",)
            self.lines.append(("unwrap: debezium", "op, before and after"))
        self.has_time = self.has_time or self._is_debezium

    def _object(self, decoded: Decoded) -> dict[str, Any] | None:
        """Return the object for the roles; None of a response or an old row."""
        value: Any = decoded.x if self.is_inference else decoded.value
        if self._is_debezium:
            payload = value.get("payload", value)
            if not isinstance(payload, dict) or payload.get("op") not in ("c", "r"):
                return None
        for name in self._record:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, dict) and decoded.kind != "response" else None

    def _read_outputs(self, sample: Sample) -> None:
        """Guess which output of a served model is its prediction, and its name."""
        values = [each.value.get("outputs") for decoded in sample.decoded for each in decoded if each.kind != "request"]
        outputs = [output for output in values if isinstance(output, dict)]
        if names := list(dict.fromkeys(name for output in outputs for name in output)):
            name = next((name for name in names if name in ("score", "prediction", "probability")), names[0])
            field = Field(("outputs", name), [output.get(name) for output in outputs], [("", 0)] * len(outputs))
            self.y_pred = Guess(field, f"an output of the model{'' if len(names) == 1 else f', of {len(names)}'}")
        header = "ce_inferenceservicename"
        if sample.records and all(any(name == header for name, _ in record.headers) for record in sample.records):
            self.model = (f"$headers.{header}", "the header that names the model")

    def label(self, name: str | None) -> Guess | None:
        """Return the label: the field that is named, or else a guess.

        Raises
        ------
        AttributaryError
            No record has a field of this name.
        """
        if name is None:
            return guess_label(self.rest)
        field = next((field for field in self.rest if name in (field.name, field.expression)), None)
        if field is None:
            names = [field.name for field in self.rest]
            near = did_you_mean(name, names) or f"; they have {show_names(names)}"
            raise AttributaryError(f"--y: {name!r} is in none of the records{near}")
        return Guess(field, f"as said; {field.description}")


_BELOW_PAYLOAD = {"where": "contains(['c', 'r'], payload.op)", "time": "payload.source.ts_ms"}


def _is_change(value: Any) -> bool:
    return isinstance(value, dict) and value.get("op") in tuple("cudr") and "after" in value and "before" in value


@dataclass
class Suggestion:
    """Lines of a configuration, each with its reason."""

    lines: list[Line]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to say."""
        return not any(line.endswith(f": {UNKNOWN}") for line, _ in self.lines)

    @property
    def text(self) -> str:
        """The configuration as YAML, the reasons as comments."""
        reasons = [f"# {printable(reason)}" if reason else "" for _, reason in self.lines]
        padded = [f"{line:<{_COLUMN}}  " if line.strip() and reason else line for line, reason in self.lines]
        return "".join(f"{line}{reason}\n" for line, reason in zip(padded, reasons, strict=True))

    @property
    def data(self) -> dict[str, Any]:
        """The configuration as plain data, the reasons by their line."""
        return {
            "complete": self.is_complete,
            "configuration": yaml.safe_load("\n".join(line for line, _ in self.lines if line.strip())),
            "reasons": [{"line": line.strip(), "reason": reason} for line, reason in self.lines if reason],
        }


def suggest(
    ours: Topic, late: Topic | None, label: str | None, brokers: Sequence[str] | None, models: Sequence[str]
) -> Suggestion:
    """Suggest the sections of a topic, and of the topic with its labels.

    Parameters
    ----------
    label
        Name of the field with the label, which then is not guessed.
    brokers
        Of a whole configuration; None for the sections alone, where there is a configuration.
    models
        Ids of the models that the configuration has.

    Raises
    ------
    AttributaryError
        No record has such a field.
    """
    sections: list[Line] = []
    if late is None:
        ours.id = None if ours.has_id else guess_id(ours.fields)
        ours.y = None if ours.is_inference else ours.label(label)
    else:
        ours.id, late.id = guess_ids(ours.fields, late.fields)
        late.y = late.label(label) or _only_field(late, ours)
        name = late.name if late.name != ours.name else f"{late.name}-labels"
        sections += [("labels:", f"by records of {late.topic}"), (f"  {scalar(name)}:", "")]
        sections += _indented(_labels(late, ours, models))
        ours.id = None if ours.has_id else ours.id
    model = guess_model(ours.rest, ours.keys)
    ours.y_pred = ours.y_pred or guess_prediction(ours.rest)
    fields = _Fields(ours)
    source = [("sources:", f"by {ours.n_records} records of {ours.topic}"), (f"  {scalar(ours.name)}:", "")]
    source += _indented([*_roles(ours, late, model, models, fields), *_features(ours, fields)])
    if brokers is None:
        return Suggestion([*source, *sections])
    kafka = (f"kafka: {{brokers: {scalar(list(brokers))}}}", "")
    label_field = (ours if late is None else late).y
    return Suggestion([kafka, *source, *sections, ("models:", ""), _model(ours, label_field, fields.features)])


class _Fields:
    """Fields without another role: features, left out, leaks.

    The others have the reason.
    """

    def __init__(self, ours: Topic) -> None:
        self.features: list[Field] = []
        self.left_out: list[tuple[Field, str]] = []
        self.leaks: list[tuple[Field, str]] = []
        rest = ours.rest
        nested = {field.path[0] for field in rest if len(field.path) > 1}
        for field in rest:
            if field.path[0] in nested and len(field.path) == 1 and field.kinds <= {"object"}:
                continue  # its own fields stand for it
            if reason := no_feature(field):
                self.left_out.append((field, reason))
            elif ours.y is not None and (said := leak(field, ours.y.field)):
                self.leaks.append((field, said))
            else:
                self.features.append(field)


def _only_field(late: Topic, ours: Topic) -> Guess | None:
    """Return the only field that observations lack as the label."""
    names = {field.name for field in ours.fields}
    lacking = [field for field in late.rest if field.name not in names and field.is_plain and not field.is_constant]
    if len(lacking) != 1:
        return None
    return Guess(lacking[0], f"the only field that observations lack; {lacking[0].description}")


def _indented(lines: Iterable[Line]) -> list[Line]:
    return [(f"    {line}", reason) for line, reason in lines]


def _role(name: str, guess: Guess | None, unknown: str = "") -> Line:
    if guess is None:
        return f"{name}: {UNKNOWN}", unknown
    return f"{name}: {scalar(guess.field.expression)}", guess.reason


def _roles(
    ours: Topic, late: Topic | None, model: tuple[str, str] | None, models: Sequence[str], fields: _Fields
) -> Iterator[Line]:
    yield from ours.lines
    if ours.model is not None:
        yield f'model: "{{{ours.model[0]}}}"', ours.model[1]
    else:
        if len(models) > 1:
            yield f"model: {scalar(models[0])}", f"or another of {', '.join(models[1:6])}"
        if model is not None:
            yield f"# model: {scalar(f'{ours.name}-{{{model[0]}}}')}", f"for one model each, {ours.name}-*: {model[1]}"
    if ours.id is not None or (late is not None and not ours.has_id):
        yield _role("id", ours.id, "say which field is the id that labels have, too")
    if ours.time is not None:
        yield _role("time", ours.time)
    if late is None and not ours.is_inference:
        names = [field.shown for field in fields.features]
        say = f"say which of {show_names(names, 12)}" if names else "say where it is"
        yield _role("y", ours.y, f"no field is called like a label: {say} (--y), or --labels TOPIC")
    if ours.y_pred is not None:
        yield _role("y_pred", ours.y_pred)


def _features(ours: Topic, fields: _Fields) -> Iterator[Line]:
    for field, said in fields.leaks:
        yield "", f"CAUTION {field.shown}: {said}: left out, unless it is known before the label"
    for field, reason in fields.left_out:
        yield "", f"left out: {field.shown}: {reason}"
    out = [field.name for field, _ in (*fields.leaks, *fields.left_out) if field.is_plain and len(field.path) == 1]
    names = textwrap.shorten(", ".join(field.shown for field in fields.features), 200, placeholder=" …")
    if ours.is_inference and not out:
        return
    if not fields.features or any(len(field.path) > 1 for field in fields.features):
        yield "x:", "one line each, because some are in objects" if fields.features else "nothing was found"
        for field in fields.features:
            yield f"  {scalar(field.name)}: {scalar(field.expression)}", field.description
    elif out:
        yield f"x: {{all_but: {scalar(out)}}}", f"{len(fields.features)} features: {names}"
    else:
        yield "", f"x: all other fields: {names}"
    if casts := {field.name: "text" for field in fields.features if len(field.kinds) > 1}:
        yield f"cast: {scalar(casts)}", "values of several kinds"


def _labels(late: Topic, ours: Topic, models: Sequence[str]) -> Iterator[Line]:
    yield from late.lines
    if len(models) > 1:
        yield f"model: {scalar(models[0])}", ""
    yield _role("id", late.id, "no field has another value in every record")
    if late.time is not None:
        yield _role("time", late.time)
    yield _role("y", late.y, "no field is called like a label")
    delays = list(_delays_ms(ours, late))
    if delays and max(delays) > 0:
        typical = _duration(max(1.0, median(delays) / 1000))
        reason = f"four times the longest of {len(delays)} delays in the sample, whose median is {typical}"
        yield f"ttl: {_duration(4 * max(delays) / 1000)}", reason
    else:
        yield "ttl: 1d", "a guess: how late labels come is not seen in the sample"


def _delays_ms(ours: Topic, late: Topic) -> Iterator[int]:
    if ours.id is None or late.id is None or ours.time is None or late.time is None:
        return
    times = dict(zip(late.id.field.values, late.time.field.times or (), strict=False))
    for key, time in zip(ours.id.field.values, ours.time.field.times or (), strict=False):
        if time is not None and (at := times.get(key)) is not None:
            yield at - time


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{round(seconds / size)}{unit}"
    return f"{max(1, round(seconds))}s"


def _model(ours: Topic, label: Guess | None, features: Sequence[Field]) -> Line:
    """Return the line of a model: a tree that fits the label's kind."""
    name, mode, params = scalar(ours.name), "", ""
    if ours.is_inference:
        values = [] if ours.y_pred is None else ours.y_pred.field.there
        is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        mode, reason = "mode: mirror, ", "no labels: it learns y_pred"
        name = name if ours.model is None else '"*"'
    elif label is None:
        is_number, reason = False, "HoeffdingTreeRegressor, where the label is a number"
    else:
        values = label.field.there
        is_number = label.field.kinds == {"number"} and (
            label.field.n_distinct > 10 or not all(float(value).is_integer() for value in values)
        )
        reason = f"the label is a {'number' if is_number else 'class'}: {label.field.description}"
        if is_number and any("text" in field.kinds for field in features):
            params = ", params: {leaf_prediction: mean}"  # linear models in the leaves take numbers only
    kind = "Regressor" if is_number else "Classifier"
    return f"  {name}: {{{mode}model: {{class: river.tree.HoeffdingTree{kind}{params}}}}}", reason


def scalar(value: Any) -> str:
    """Return a text, list or mapping as YAML in a single line."""
    written = yaml.safe_dump([value], default_flow_style=True, allow_unicode=True, width=10**9, sort_keys=False)
    return written.strip()[1:-1]

"""JSON Schemas of the records on the topics, by kind, and of webhooks."""

from __future__ import annotations

from typing import Any

from attributary_topics import (
    DEAD_LETTER_HEADER_PREFIX,
    ORIGIN_HEADER,
    REASONS,
    RECORD_HEADER,
    RECORD_KINDS,
    REPLAYED_HEADER,
    DeadLetter,
    DependenceEvent,
    ImportanceEvent,
    IncidentEvent,
    ModelStatus,
    Source,
    event_headers,
)
from attributary_topics.arrivals import MAX_ID_LENGTH
from attributary_topics.deployments import MAX_VERSION_LENGTH

from .described import Schema, schema_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAJOR = "v1"

_TEXT: Schema = {"type": "string"}
_CLASS: Schema = {
    "type": "object",
    "properties": {
        "class": {"type": "string", "pattern": r"^[^:\s]+$", "description": "The dotted path of a class."},
        "params": {"type": "object", "description": "Its arguments: plain values, and such objects, at any depth."},
    },
    "required": ["class"],
    "additionalProperties": False,
}
_FACTORY: Schema = {"type": "string", "pattern": r"^[^:\s]+:[^:\s]+$", "description": "module:function"}


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of record, and of webhooks.

    A schema describes a record's value as JSON, or its headers as texts.
    """
    made = {
        "observation": _observation(),
        "label": _part("Label", "A label that comes by itself.", id=_ID, y=_Y),
        "request": _part("Request", "What was asked of a served model.", id=_ID, x=_X),
        "response": _part("Response", "What a served model has answered.", id=_ID, y_pred=_Y_PRED),
        "record-headers": _record_headers(),
        "deployment": _deployment(),
        "importance": schema_of(ImportanceEvent),
        "dependence": schema_of(DependenceEvent),
        "incident": schema_of(IncidentEvent),
        "status": schema_of(ModelStatus),
        "event-headers": _event_headers(),
        "dead-letter-headers": _dead_letter_headers(),
        "webhook": _webhook(),
    }
    return {
        kind: {"$schema": DIALECT, "$id": f"urn:attributary:{MAJOR}:{kind}", **schema} for kind, schema in made.items()
    }


_X: Schema = {
    "type": "object",
    "additionalProperties": {"type": ["number", "string", "boolean", "null"]},
    "description": "Feature name to value; null where it is missing.",
}
_Y: Schema = {"type": ["string", "number", "boolean"], "description": "The label or target."}
_MODEL_ID: Schema = {"type": "string", "description": "Equal to the record's key."}
_ID: Schema = {
    "oneOf": [{"type": "string", "minLength": 1, "maxLength": MAX_ID_LENGTH}, {"type": "integer"}],
    "description": "By which observation and label, or request and response, are joined.",
}
_Y_PRED: Schema = {
    "oneOf": [
        {"type": ["string", "number", "boolean"]},
        {"type": "object", "additionalProperties": {"type": "number"}, "minProperties": 1},
    ],
    "description": "The prediction that was logged: a label, a number, or class to probability.",
}
_TIME: Schema = {
    "type": ["number", "string", "null"],
    "description": "When it was: a number since 1970, or RFC 3339. Without it, Kafka's timestamp counts.",
}


def _observation() -> Schema:
    said = "Where the model's configuration wants it, as of a request or response; else left alone, whatever it is."
    return {
        "title": "Observation",
        "description": "An observation; with its label, unless labels come by themselves or the model has none. Other "
        "fields are left alone.",
        "type": "object",
        "properties": {
            "x": _X,
            "y": {**_Y, "type": [*_Y["type"], "null"]},
            "model_id": _MODEL_ID,
            **{name: {"description": said} for name in ("id", "y_pred", "time")},
        },
        "required": ["x"],
    }


def _part(title: str, description: str, **properties: Schema) -> Schema:
    """Return the schema of a record that comes apart from its other half.

    All fields are required but `model_id` and `time`.
    """
    return {
        "title": title,
        "description": f"{description} Other fields are left alone.",
        "type": "object",
        "properties": {**properties, "model_id": _MODEL_ID, "time": _TIME},
        "required": list(properties),
    }


def _record_headers() -> Schema:
    kind = "What the record is; without it, an observation."
    origin = "Of what was mapped: topic:partition:offset:n:s or r:previous; a worker takes each once by it."
    replayed = "Of a dead letter that is sent again: its id; a worker takes each once by it."
    return {
        "title": "RecordHeaders",
        "description": "The headers that count on the topic of observations; others are left alone.",
        "type": "object",
        "properties": {
            RECORD_HEADER: {"type": "string", "enum": list(RECORD_KINDS), "description": kind},
            ORIGIN_HEADER: {**_TEXT, "description": origin},
            REPLAYED_HEADER: {**_TEXT, "description": replayed},
        },
        "required": [],
    }


def _deployment() -> Schema:
    model: Schema = {
        "description": "A class with its arguments, a list of such steps, a factory with its arguments, or the address "
        "of a model that is served.",
        "oneOf": [
            _CLASS,
            {"type": "array", "items": _CLASS, "minItems": 1},
            {
                "type": "object",
                "properties": {"factory": _FACTORY, "params": {"type": "object"}},
                "required": ["factory"],
                "additionalProperties": False,
            },
            {"$ref": "#/$defs/Served"},
        ],
    }
    version = {"type": "string", "minLength": 1, "maxLength": MAX_VERSION_LENGTH, "description": "Name of the version."}
    return {
        "title": "Deployment",
        "description": "A new version of the model that the record's key names.",
        "type": "object",
        "properties": {
            "version": version,
            "model": model,
            "factory": _FACTORY,
            "artefact": {"type": "string", "minLength": 1, "description": "Path of a file below artefacts.directory."},
            "mlflow": {
                "type": "string",
                "minLength": 1,
                "description": "models:/NAME/VERSION of MLflow's registry, no alias, or a folder below "
                "artefacts.directory.",
            },
            "sha256": {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "Of the file's content; of mlflow over the hashes of its files.",
            },
            "model_id": _MODEL_ID,
        },
        "required": ["version"],
        "oneOf": [
            {"required": ["model"]},
            {"required": ["factory"]},
            {"required": ["artefact", "sha256"]},
            {"$ref": "#/$defs/OfMlflow"},
        ],
        "additionalProperties": False,
        "$defs": {
            "Served": {
                "type": "object",
                "description": "A model that is served, and how it is asked.",
                "properties": {"served": {"type": "string", "pattern": "^https?://", "description": "Its address."}},
                "required": ["served"],
                "additionalProperties": True,
            },
            "OfMlflow": {"description": "A model of MLflow.", "required": ["mlflow", "sha256"]},
        },
    }


def _event_headers() -> Schema:
    source = Source("", 0, 0)
    told = {name: value.decode() for name, value in event_headers("importance", "", source, 0, 0)}
    fixed = {"ce_specversion", "content-type"}
    texts = {
        "ce_id": "The same for the same event: <model_id>:<topic>:<partition>:<offset>:<n> of its observation; without "
        "a record, <model_id>:<version>:<number of the observation>:<its time>:<n>.",
        "ce_source": "/attributary/<topic of the observation>; without a record, /attributary/monitor",
        "ce_subject": "The model id.",
        "ce_time": "Kafka's timestamp of the observation, or its time where there is no record, RFC 3339; absent where "
        "that is no date.",
    }
    properties: dict[str, Any] = {}
    for name, value in told.items():
        properties[name] = {"const": value} if name in fixed else dict(_TEXT)
        if name in texts:
            properties[name]["description"] = texts[name]
    properties["ce_type"] = {"enum": [f"attributary.{kind}.{MAJOR}" for kind in ("importance", "incident")]}
    return {
        "title": "EventHeaders",
        "description": "CloudEvents 1.0 in binary mode: the headers of events of importance and of incidents.",
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name != "ce_time"],
    }


def _webhook() -> Schema:
    incident = schema_of(IncidentEvent)
    texts = {
        "id": "The same for the same revision, also when it is sent again: `ce_id` on the topic of incidents.",
        "source": "/attributary/<topic of the observation>",
        "subject": "The model id.",
    }
    fixed = {"specversion": "1.0", "datacontenttype": "application/json", "type": f"attributary.incident.{MAJOR}"}
    properties: dict[str, Any] = {
        **{name: {"const": value} for name, value in fixed.items()},
        **{name: {**_TEXT, "description": text} for name, text in texts.items()},
        "time": {
            **_TEXT,
            "description": "Kafka's timestamp of the observation, RFC 3339; absent where that is no date.",
        },
        "data": {name: part for name, part in incident.items() if name != "$defs"},
    }
    return {
        "title": "WebhookEvent",
        "description": "What a webhook is sent: CloudEvents 1.0 in structured mode, around a revision of an incident. "
        "It replaces what came with the same `data.id` before.",
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name != "time"],
        "$defs": incident["$defs"],
    }


def _dead_letter_headers() -> Schema:
    source = Source("", 0, 0)
    letter = DeadLetter(None, None, [], source, 0, "", "", "", "", 1, 1, 1, 1)
    number = {"type": "string", "pattern": "^[0-9]+$"}
    texts = {
        "id": "Topic, partition and offset of the record, with colons between them.",
        "stage": "Where it failed.",
        "reason": "Why it could not be used. Further reasons may come.",
        "error": "Class of the exception.",
        "message": "Text of the exception.",
        "topic": "Topic of the record.",
        "timestamp-ms": "Kafka's timestamp of the record, milliseconds since the epoch.",
        "truncated-bytes": "Bytes cut off the value's end; absent where there are none.",
        "truncated-key-bytes": "Bytes cut off the key's end; absent where there are none.",
        "truncated-headers": "Headers left out; absent where there are none.",
    }
    properties: dict[str, Any] = {}
    for name, value in letter.all_headers():
        short = name.removeprefix(DEAD_LETTER_HEADER_PREFIX)
        described = {"description": texts[short]} if short in texts else {}
        properties[name] = {**described, **(number if value and value.isdigit() else _TEXT)}
    properties[f"{DEAD_LETTER_HEADER_PREFIX}reason"]["examples"] = list(REASONS)
    required = [name for name in properties if "truncated" not in name]
    return {
        "title": "DeadLetterHeaders",
        "description": "What a dead letter has beside the headers of the record, which it keeps.",
        "type": "object",
        "properties": properties,
        "required": required,
    }

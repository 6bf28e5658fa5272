"""JSON Schemas of the records on the topics, by kind, and of webhooks.

Those of events are made of their dataclasses, whose docstrings describe the fields; those of what others write are a
file.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml
from pydantic import TypeAdapter

from attributary_topics import (
    DEAD_LETTER_HEADER_PREFIX,
    REASONS,
    DeadLetter,
    DependenceEvent,
    ImportanceEvent,
    IncidentEvent,
    ModelStatus,
    Source,
    event_headers,
)
from attributary_topics.codec import optional_fields

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAJOR = "v1"

EVENTS = {
    "importance": ImportanceEvent,
    "dependence": DependenceEvent,
    "incident": IncidentEvent,
    "status": ModelStatus,
}
"""Kind of an event to its type."""

_RECORDS = Path(__file__).with_name("records.yaml")
_TEXT: Schema = {"type": "string"}
_NULL: Schema = {"type": "null"}
_SOURCE = (
    "Record of the observation that the event follows from. Everything that workers send has it. It is absent only "
    "where there is no record: in what a service publishes that watches its models itself, by a Monitor."
)
_HEADERS = {
    "ce_id": "The same for the same event: <model_id>:<topic>:<partition>:<offset>:<n> of its observation; without a "
    "record, <model_id>:<version>:<number of the observation>:<its time>:<n>.",
    "ce_source": "/attributary/<topic of the observation>; without a record, /attributary/monitor",
    "ce_subject": "The model id.",
    "ce_time": "Kafka's timestamp of the observation, or its time where there is no record, RFC 3339; absent where "
    "that is no date.",
}
_WEBHOOK = {
    "id": "The same for the same revision, also when it is sent again: `ce_id` on the topic of incidents.",
    "source": "/attributary/<topic of the observation>",
    "subject": "The model id.",
    "time": "Kafka's timestamp of the observation, RFC 3339; absent where that is no date.",
}
_DEAD_LETTER = {
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


def schemas() -> dict[str, Schema]:
    """Return the schema of each kind of record, and of webhooks.

    A schema describes a record's value as JSON, or its headers as texts.
    """
    made = {
        **yaml.safe_load(_RECORDS.read_text(encoding="utf-8")),
        **{kind: schema_of(type_) for kind, type_ in EVENTS.items()},
        "event-headers": _event_headers(),
        "dead-letter-headers": _dead_letter_headers(),
        "webhook": _webhook(),
    }
    return {
        kind: {"$schema": DIALECT, "$id": f"urn:attributary:{MAJOR}:{kind}", **schema} for kind, schema in made.items()
    }


def schema_of(kind: type[Any]) -> Schema:
    """Return the JSON Schema of a dataclass.

    Dataclasses that it holds are under `$defs`. A field that is `absent` by its type is left out where it does not
    apply, and never null. All others are always there, and one with a default always has that.
    """
    by_name = {one.__name__: one for one in _dataclasses_in(kind)}
    made = TypeAdapter(kind).json_schema(mode="serialization")
    definitions = {name: _described(by_name[name], part) for name, part in made.pop("$defs", {}).items()}
    return {**_described(kind, made), **({"$defs": definitions} if definitions else {})}


def _dataclasses_in(kind: Any) -> set[type[Any]]:
    if not is_dataclass(kind):
        return set().union(*map(_dataclasses_in, get_args(kind)))
    assert isinstance(kind, type)
    return {kind}.union(*map(_dataclasses_in, get_type_hints(kind).values()))


def _described(kind: type[Any], schema: Schema) -> Schema:
    """Return pydantic's schema of a dataclass with descriptions and constants.

    It requires the fields that are always there.
    """
    optional = optional_fields(kind)
    texts = {**({"source": _SOURCE} if "source" in optional else {}), **_texts(kind)}
    by_name: dict[str, Field[Any]] = {one.name: one for one in fields(kind)}
    properties = {
        name: {
            **({"description": texts[name]} if name in texts else {}),
            **_property(by_name[name], part, is_optional=name in optional),
        }
        for name, part in schema["properties"].items()
    }
    summary = (inspect.getdoc(kind) or "").partition("\n\n")[0]
    return _object(kind.__name__, " ".join(summary.split()), properties, optional)


def _property(field: Field[Any], schema: Schema, *, is_optional: bool) -> Schema:
    if field.default not in (MISSING, None):
        return {"const": field.default}
    schema = {name: value for name, value in schema.items() if name not in ("title", "default")}
    if is_optional:
        present = [part for part in schema["anyOf"] if part != _NULL]
        return present[0] if len(present) == 1 else {"anyOf": present}
    return schema


def _texts(kind: type[Any]) -> dict[str, str]:
    """Return each field's text from the docstring's section Attributes."""
    section = inspect.cleandoc(kind.__doc__ or "").partition("Attributes\n----------\n")[2]
    texts: dict[str, str] = {}
    for names, text in re.findall(r"^([\w, ]+)\n((?:    .*\n?|\n)+)", section, re.MULTILINE):
        texts |= dict.fromkeys(re.split(r", *", names), " ".join(text.split()))
    return texts


def _object(title: str, description: str, properties: Schema, optional: Any) -> Schema:
    return {
        "title": title,
        "description": description,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
    }


def _text(description: str | None) -> Schema:
    return {**_TEXT, **({"description": description} if description else {})}


def _event_headers() -> Schema:
    headers = {name: value.decode() for name, value in event_headers("importance", "", Source("", 0, 0), 0, 0)}
    properties: Schema = {name: _text(_HEADERS.get(name)) for name in headers}
    properties |= {name: {"const": headers[name]} for name in ("ce_specversion", "content-type")}
    properties["ce_type"] = {"enum": [f"attributary.{kind}.{MAJOR}" for kind in ("importance", "incident")]}
    description = "CloudEvents 1.0 in binary mode: the headers of events of importance and of incidents."
    return _object("EventHeaders", description, properties, ("ce_time",))


def _webhook() -> Schema:
    incident = schema_of(IncidentEvent)
    definitions = incident.pop("$defs")
    fixed = {"specversion": "1.0", "datacontenttype": "application/json", "type": f"attributary.incident.{MAJOR}"}
    properties = {
        **{name: {"const": value} for name, value in fixed.items()},
        **{name: _text(text) for name, text in _WEBHOOK.items()},
        "data": incident,
    }
    description = (
        "What a webhook is sent: CloudEvents 1.0 in structured mode, around a revision of an incident. It replaces "
        "what came with the same `data.id` before."
    )
    return {**_object("WebhookEvent", description, properties, ("time",)), "$defs": definitions}


def _dead_letter_headers() -> Schema:
    letter = DeadLetter(None, None, [], Source("", 0, 0), 0, "", "", "", "", 1, 1, 1, 1)
    properties: Schema = {}
    for name, value in letter.all_headers():
        short = name.removeprefix(DEAD_LETTER_HEADER_PREFIX)
        described = {"description": _DEAD_LETTER[short]} if short in _DEAD_LETTER else {}
        is_number = value is not None and value.isdigit()
        properties[name] = {**described, **_TEXT, **({"pattern": "^[0-9]+$"} if is_number else {})}
    properties[f"{DEAD_LETTER_HEADER_PREFIX}reason"]["examples"] = list(REASONS)
    optional = [name for name in properties if "truncated" in name]
    description = "What a dead letter has beside the headers of the record, which it keeps."
    return _object("DeadLetterHeaders", description, properties, optional)

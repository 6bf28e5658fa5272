"""JSON Schema of the wire types, which are plain dataclasses.

It is made of their fields, and of the descriptions in their docstrings.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from attributary_topics import (
    ADVICE,
    LIVES,
    SEVERITIES,
    STATES,
    WHATS,
    DependenceEvent,
    ImportanceEvent,
    IncidentEvent,
)
from attributary_topics.codec import optional_fields

Schema = dict[str, Any]

MODES = ("unlabelled", "mirror", "anomaly")

VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("ChangeDetails", "route"): ("detector", "discrepancy", "version"),
    ("ChangeDetails", "verdict"): ("followed", "harder", "degraded"),
    ("ChangeDetails", "pattern"): ("trend", "recurring"),
    ("ChangeDetails", "scale"): ("relative", "absolute"),
    ("DependenceEvent", "kind"): ("number", "category"),
    ("ImportanceEvent", "trigger"): ("interval", "material_change"),
    ("IncidentEvent", "what"): tuple(WHATS),
    ("IncidentEvent", "life"): LIVES,
    ("IncidentEvent", "severity"): SEVERITIES,
    ("IncidentEvent", "advice"): ADVICE,
    ("IncidentEvent", "reason"): (
        "suspected",
        "confirmed",
        "raised",
        "lasts",
        "returned",
        "settled",
        "replaced",
        "noise",
    ),
    **{(kind.__name__, "mode"): MODES for kind in (ImportanceEvent, DependenceEvent, IncidentEvent)},
    ("ModelStatus", "state"): tuple(STATES),
}
"""Type and field to the values that there are today. Further ones may come: readers take what they do not know."""

OF_RECORDS = {
    "source": "Record of the observation that the event follows from. Everything that workers send has it. It is "
    "absent only where there is no record: in what a service publishes that watches its models itself, by a Monitor."
}
"""Fields that workers always give, and a `Monitor` never: what is said of them."""

_NULL = {"type": "null"}


def schema_of(kind: Any) -> Schema:
    """Return the JSON Schema of a dataclass or of a union of dataclasses.

    Dataclasses that these hold are under `$defs`. A field that is `absent` by its type is left out where it does not
    apply, and never null. All others are always there, and one with a default always has that.
    """
    by_name = {one.__name__: one for one in _dataclasses_in(kind)}
    made = TypeAdapter(kind).json_schema(mode="serialization")
    definitions = {name: _described(by_name[name], part) for name, part in made.pop("$defs", {}).items()}
    made = _described(kind, made) if isinstance(kind, type) else {"oneOf": made["anyOf"]}
    return {**made, **({"$defs": definitions} if definitions else {})}


def _dataclasses_in(kind: Any) -> set[type[Any]]:
    if not is_dataclass(kind):
        return set().union(*map(_dataclasses_in, get_args(kind)))
    assert isinstance(kind, type)
    return {kind}.union(*map(_dataclasses_in, get_type_hints(kind).values()))


def _described(kind: type[Any], schema: Schema) -> Schema:
    """Return the schema of a dataclass as it is published.

    It has constants, known values and descriptions, and requires the fields that are always there.
    """
    texts = {**{name: text for name, text in OF_RECORDS.items() if name in optional_fields(kind)}, **_texts(kind)}
    known: dict[str, Field[Any]] = {one.name: one for one in fields(kind)}
    properties = {
        name: _property(kind, known[name], part, texts.get(name)) for name, part in schema["properties"].items()
    }
    return {
        "title": kind.__name__,
        "description": _summary(kind),
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional_fields(kind)],
    }


def _property(kind: type[Any], field: Field[Any], schema: Schema, text: str | None) -> Schema:
    schema = {name: value for name, value in schema.items() if name not in ("title", "default")}
    if field.default not in (MISSING, None):
        schema = {"const": field.default}
    elif (values := VALUES.get((kind.__name__, field.name))) is not None:
        named: Schema = {"type": "string", "enum": list(values)}
        schema = {"anyOf": [named, _NULL]} if _NULL in schema.get("anyOf", ()) else named
    if field.name in optional_fields(kind):
        left = [part for part in schema["anyOf"] if part != _NULL]
        schema = left[0] if len(left) == 1 else {"anyOf": left}
    return {**({"description": text} if text else {}), **schema}


def _summary(kind: type[Any]) -> str:
    return " ".join(inspect.getdoc(kind).partition("\n\n")[0].split())  # type: ignore[union-attr]  # each has one


def _texts(kind: type[Any]) -> dict[str, str]:
    """Return each field's text from the docstrings' sections Attributes.

    Sections of base classes count, too.
    """
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__[:-1]):
        section = (inspect.cleandoc(one.__doc__ or "")).partition("Attributes\n----------\n")[2]
        for names, text in re.findall(r"^([\w, ]+)\n((?:    .*\n?|\n)+)", section, re.MULTILINE):
            found |= dict.fromkeys(re.split(r", *", names), " ".join(text.split()))
    return found

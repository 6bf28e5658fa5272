"""Guesses of the format of records and the envelope around the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from ..formats.base import Decoded
from ..records import OriginRecord
from .fields import Field
from .rules import Guess

_OPERATIONS = frozenset("cudr")


@dataclass(frozen=True)
class Form:
    """How records are read.

    Attributes
    ----------
    format
        One of the formats of a source.
    unwrap
        Whether there is Debezium's envelope.
    record
        Names that lead to the object with the roles.
    keys
        Further keys of the section that this needs, by name.
    reasons
        Why, by the key of the configuration.
    """

    format: str = "json"
    unwrap: bool = False
    record: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    prediction: Guess | None = None
    model: tuple[str, str] | None = None

    @property
    def is_inference(self) -> bool:
        """Whether requests and responses of a model are separate records.

        They have no labels.
        """
        return self.format == "open-inference"

    @property
    def has_time(self) -> bool:
        """Whether the form itself says the time."""
        return self.unwrap or self.format in ("cloudevents", "open-inference") or "time" in dict(self.keys)

    @property
    def has_id(self) -> bool:
        """Whether the form itself says the id."""
        return self.format in ("cloudevents", "open-inference")

    def objects(self, decoded: Sequence[Decoded]) -> list[dict[str, Any]]:
        """Return the objects for the roles; of an envelope only new rows."""
        found = []
        for one in decoded:
            if one.kind == "response":
                continue
            value: Any = one.x if self.is_inference else one.value
            if self.unwrap and not _is_new(value):
                continue
            for name in self.record:
                value = value.get(name) if isinstance(value, dict) else None
            if isinstance(value, dict):
                found.append(value)
        return found


def _is_new(value: Any) -> bool:
    payload = value.get("payload", value) if isinstance(value, dict) else {}
    return isinstance(payload, dict) and payload.get("op") in ("c", "r")


def guess_format(records: Sequence[OriginRecord]) -> tuple[str, str]:
    """Return the format of records and the reason for it.

    It is `framed` where a schema registry has to tell the format.
    """
    with_value = [record for record in records if record.value]
    headers = [{name.lower(): value or b"" for name, value in record.headers} for record in with_value]
    if with_value and all("ce_specversion" in one for one in headers):
        if all(b"inference" in one.get("ce_type", b"") for one in headers):
            return "open-inference", "headers of CloudEvents, whose type is an inference"
        return "cloudevents", "headers of CloudEvents"
    if with_value and all(b"application/cloudevents" in one.get("content-type", b"") for one in headers):
        return "cloudevents", "the content type"
    if with_value and all(
        record.value[:1] == b"\x00" and len(record.value) > 5 for record in with_value if record.value
    ):
        return "framed", f"byte 0 and schema id {int.from_bytes((with_value[-1].value or b'')[1:5], 'big')}"
    values = [value for record in with_value if isinstance(value := _json(record.value), dict)]
    if values and all(_is_inference(value) for value in values):
        return "open-inference", "inputs or outputs of a model"
    return "json", f"{len(values)} of {len(with_value)} values are JSON objects"


def _is_inference(value: dict[str, Any]) -> bool:
    lists = [value.get(name) for name in ("inputs", "outputs") if name in value]
    return bool(lists) and all(
        isinstance(tensors, list) and all(isinstance(one, dict) and "datatype" in one for one in tensors)
        for tensors in lists
    )


def _json(value: bytes | None) -> Any:
    try:
        return orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None


def guess_form(format_: str, reason: str, records: Sequence[OriginRecord], decoded: Sequence[list[Decoded]]) -> Form:
    """Return how decoded records are read, with the guessed envelope."""
    values = [one.value for each in decoded for one in each]
    reasons = [] if format_ == "json" else [("format", reason)]
    if format_ == "open-inference":
        return _inference(reasons, records, decoded)
    if values and all(set(value) == {"schema", "payload"} for value in values):
        payloads = [value["payload"] for value in values]
        if any(map(_is_envelope, payloads)):
            keys = (("where", "contains(['c', 'r'], payload.op)"), ("time", "payload.source.ts_ms"))
            why = ("record", "Debezium's envelope below payload, as Connect's JSON converter writes it with schemas")
            return Form(format_, True, ("payload", "after"), keys, (*reasons, why))
        why = ("record", "schema and payload, as Connect's JSON converter writes them")
        return Form(format_, False, ("payload",), (), (*reasons, why))
    if values and any(map(_is_envelope, values)):
        return Form(format_, True, ("after",), (), (*reasons, ("unwrap", "op, before and after")))
    return Form(format_, False, (), (), tuple(reasons))


def _is_envelope(value: Any) -> bool:
    return isinstance(value, dict) and value.get("op") in _OPERATIONS and "after" in value and "before" in value


def _inference(
    reasons: list[tuple[str, str]], records: Sequence[OriginRecord], decoded: Sequence[list[Decoded]]
) -> Form:
    outputs = [one.value.get("outputs") for each in decoded for one in each if one.kind != "request"]
    names = dict.fromkeys(name for one in outputs if isinstance(one, dict) for name in one)
    prediction = None
    if names:
        name = next((name for name in names if name in ("score", "prediction", "probability")), next(iter(names)))
        values = [one.get(name) for one in outputs if isinstance(one, dict)]
        field = Field(("outputs", name), values, [("", 0)] * len(values))
        prediction = Guess(field, f"an output of the model{'' if len(names) == 1 else f', of {len(names)}'}")
    header = "ce_inferenceservicename"
    has_header = records and all(any(name == header for name, _ in record.headers) for record in records)
    model = (f"$headers.{header}", "the header that names the model") if has_header else None
    return Form("open-inference", False, (), (), tuple(reasons), prediction, model)

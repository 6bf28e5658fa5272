"""Format for logs of model servers, of KServe and of Seldon Core 2.

They hold requests and responses of the Open Inference Protocol.

Each row of a message is an observation. The id of a CloudEvent, or else the record's key, is the same for a request and
its response: with the number of the row behind it, it is the id of the observation.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from attributary_topics import InvalidRecordError

from ...errors import ConfigError
from ..records import OriginRecord
from .base import Decoded, OwnFormat, header
from .cloudevents import Event, content_type, read_event
from .inference_json import REQUEST, RESPONSE, Message, read_json

_ENDINGS = {
    ".inference.request": REQUEST,
    ".inference.response": RESPONSE,
    ".inputs": REQUEST,
    ".outputs": RESPONSE,
}
"""Endings of the types of CloudEvents, of which KServe's are `org.kubeflow.serving…`, and of Seldon Core 2's topics."""

_N_JSON = ("inference-header-content-length", "Inference-Header-Content-Length")


class OpenInferenceFormat(OwnFormat):
    """Format of requests and responses of the Open Inference Protocol.

    Requests give `inputs` and x, and responses give `outputs`.
    """

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return an object for each row of the message."""
        if not record.value:
            return []
        event = read_event(record) or Event(None, None, None, record.value)
        if event.data is None:
            return []
        message = self._read(record, event)
        message_id = event.id or _text(record.key) or message.id
        return [
            Decoded(
                _value(message, message_id, n, row),
                kind=message.kind,
                id=None if message_id is None else f"{message_id}#{n}",
                time=event.time,
                x=row if message.kind == REQUEST else None,
            )
            for n, row in enumerate(message.rows)
        ]

    def _read(self, record: OriginRecord, event: Event) -> Message:
        kind = _kind(event.type) if event.type is not None else None
        if event.type is not None and kind is None:
            expected = "org.kubeflow.serving.inference.request or .response"
            raise InvalidRecordError("not_inference", "ce_type", expected, event.type)
        n_json = next((found for name in _N_JSON if (found := header(record.headers, name))), None)
        if n_json is not None and not n_json.isdecimal():
            raise InvalidRecordError("not_inference", _N_JSON[0], "a number of bytes", n_json)
        # What its content type is, is not asked of JSON: curl sends forms, and KServe logs what was sent.
        if not isinstance(event.data, bytes) or n_json is not None or _is_json(event.data, content_type(record)):
            return read_json(event.data, kind, None if n_json is None else int(n_json))
        kind = kind or _kind(record.topic)
        if kind is None:
            expected = "a header ce_type, or a topic whose name ends in .inputs or .outputs, for a message in Protobuf"
            raise InvalidRecordError("not_inference", "ce_type", expected, None)
        if find_spec("google") is None or find_spec("google.protobuf") is None:
            raise ConfigError("format open-inference needs protobuf for Protobuf: pip install 'attributary[protobuf]'")
        from .inference_protobuf import read_protobuf

        return read_protobuf(event.data, kind)


def _kind(name: str) -> str | None:
    return next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def _is_json(data: bytes, kind: str) -> bool:
    """Return whether bytes are JSON, and not Protobuf.

    A message in Protobuf may begin as JSON does, but hardly end so, too.
    """
    if "protobuf" in kind or "grpc" in kind:
        return False
    return data.lstrip()[:1] in (b"{", b"[") and data.rstrip()[-1:] in (b"}", b"]")


def _value(message: Message, message_id: str | None, n: int, row: dict[str, Any]) -> dict[str, Any]:
    value: dict[str, Any] = {
        "inputs" if message.kind == REQUEST else "outputs": row,
        "id": message_id,
        "row": n,
        "kind": message.kind,
    }
    for name in ("model_name", "model_version"):
        if (said := getattr(message, name)) is not None:
            value[name] = said
    if message.parameters:
        value["parameters"] = message.parameters
    return value


def _text(key: bytes | None) -> str | None:
    try:
        return key.decode() if key else None
    except UnicodeDecodeError:
        return None

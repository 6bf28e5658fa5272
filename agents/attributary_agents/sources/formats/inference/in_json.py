"""Open Inference Protocol in JSON: requests and responses.

Version 2, and `instances` of version 1.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attributary_topics import InvalidRecordError
from attributary_topics.codec import decode_json

from ..base import as_object
from .tensors import Tensor, check_rows, flat, from_raw, rows_of, text

REQUEST, RESPONSE = "request", "response"


@dataclass(slots=True, frozen=True)
class Message:
    """A request or a response, whatever it was written as.

    Attributes
    ----------
    rows
        The inputs of a request or the outputs of a response, row by row.
    id, model_name, model_version, parameters
        As the message says them.
    """

    kind: str
    rows: list[dict[str, Any]]
    id: str | None = None
    model_name: str | None = None
    model_version: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)


def read_json(data: Any, kind: str | None, n_json: int | None = None) -> Message:
    """Return the message in JSON.

    Parameters
    ----------
    data
        Bytes, or what a CloudEvent holds decoded.
    kind
        `request` or `response`, where something beside the message says it.
    n_json
        So many bytes of the data are JSON; the rest are the bytes of tensors.

    Raises
    ------
    InvalidRecordError
        It is no message of the protocol, or a tensor is not what it says.
    """
    raw = b""
    if isinstance(data, bytes):
        data, raw = data[:n_json], b"" if n_json is None else data[n_json:]
        data = decode_json(data, nan_is_null=True)
    message = as_object(data)
    kind = kind or _kind(message)
    if kind == REQUEST:
        rows = _rows(message, "inputs", "instances", raw)
    else:
        rows = _rows(message, "outputs", "predictions", raw)
    message_id, model_name, model_version = (_text(message, name) for name in ("id", "model_name", "model_version"))
    parameters = message.get("parameters")
    return Message(
        kind, rows, message_id, model_name, model_version, parameters if isinstance(parameters, dict) else {}
    )


def _text(message: dict[str, Any], name: str) -> str | None:
    value = message.get(name)
    return value if isinstance(value, str) and value else None


def _kind(message: dict[str, Any]) -> str:
    # A request may name the outputs that it wants, so its inputs decide.
    if "inputs" in message or "instances" in message:
        return REQUEST
    if "outputs" in message or "predictions" in message:
        return RESPONSE
    raise _none(message, "inputs, instances, outputs or predictions")


def _none(message: dict[str, Any], wanted: str) -> InvalidRecordError:
    return InvalidRecordError("not_inference", "value", f"an object with {wanted}", message)


def _rows(message: dict[str, Any], tensors: str, instances: str, raw: bytes) -> list[dict[str, Any]]:
    if isinstance(found := message.get(tensors), list):
        return rows_of(_tensors(found, tensors, raw), tensors)
    if isinstance(found := message.get(instances), list):
        return _instances(found, instances)
    raise _none(message, f"{tensors} or {instances}, a list")


def _tensors(found: list[Any], part: str, raw: bytes) -> list[Tensor]:
    tensors = []
    at = 0
    for i, one in enumerate(found):
        tensor = as_object(one, f"{part}[{i}]")
        name, shape, datatype = tensor.get("name"), tensor.get("shape"), tensor.get("datatype")
        if not isinstance(name, str) or not isinstance(shape, list) or not isinstance(datatype, str):
            expected = "a tensor with name, shape and datatype"
            raise InvalidRecordError("wrong_tensor", f"{part}[{i}]", expected, list(tensor))
        where = f"{part}.{name}"
        parameters = tensor.get("parameters")
        parameters = parameters if isinstance(parameters, dict) else {}
        if isinstance(n := parameters.get("binary_data_size"), int) and "data" not in tensor:
            if not 0 <= n <= len(raw) - at:
                raise InvalidRecordError("wrong_tensor", where, f"{n} bytes behind the JSON", len(raw) - at)
            values = from_raw(datatype, raw[at : at + n], where)
            at += n
        else:
            values = flat(tensor.get("data"), where)
            if datatype == "BYTES" and parameters.get("content_type") == "base64":
                values = [_from_base64(value, where) for value in values]
        tensors.append(Tensor(name, shape, values, names_of(parameters.get("names"), where)))
    return tensors


def names_of(names: Any, where: str) -> list[str] | None:
    """Return column names from a tensor's parameter: a list, or comma text."""
    if names is None:
        return None
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRecordError("wrong_tensor", f"{where}.parameters.names", "a list of names", names)
    return names


def _from_base64(value: Any, where: str) -> str | bytes:
    try:
        return text(base64.b64decode(value, validate=True))
    except (binascii.Error, TypeError, ValueError):
        raise InvalidRecordError("wrong_tensor", where, "text in base64", value) from None


def _instances(found: list[Any], part: str) -> list[dict[str, Any]]:
    check_rows(len(found), part)
    rows = []
    for i, one in enumerate(found):
        where = f"{part}[{i}]"
        if isinstance(one, dict):
            rows.append(one)
        elif not isinstance(one, list):
            rows.append({part: one})
        elif any(isinstance(value, (list, dict)) for value in one):
            raise InvalidRecordError("wrong_tensor", where, "a value, a list of values or an object", one)
        else:
            rows.append({part: one[0]} if len(one) == 1 else {f"{part}_{j}": value for j, value in enumerate(one)})
    return rows

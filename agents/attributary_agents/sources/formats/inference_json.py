"""Open Inference Protocol in JSON: requests and responses.

Version 2, and `instances` of version 1.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from attributary_topics import InvalidRecordError
from attributary_topics.codec import decode_json

from .base import as_object

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


RAW_TYPES = {
    "BOOL": "?",
    **{f"INT{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
    "BF16": "<u2",
}
"""Data types of the protocol and how numpy reads their bytes; texts (BYTES) have their lengths in front."""


MOST_ROWS = 100_000
"""Rows of a message: each becomes an object of its own, some 700 bytes for a row that is written in two."""


class Tensor(NamedTuple):
    """A tensor with its values in the order of rows.

    Attributes
    ----------
    names
        Of its columns; None where it does not say them.
    """

    name: str
    shape: Sequence[int]
    values: Sequence[Any]
    names: Sequence[str] | None = None


def rows_of(tensors: Sequence[Tensor], part: str) -> list[dict[str, Any]]:
    """Return the rows of tensors that stand beside each other.

    Parameters
    ----------
    part
        `inputs` or `outputs`, for messages.

    Raises
    ------
    InvalidRecordError
        `wrong_tensor`: one does not have as many values as its shape says, has no rows, or other rows than the others.
    """
    columns: dict[str, Sequence[Any]] = {}
    n_rows: int | None = None
    for tensor in tensors:
        where = f"{part}.{tensor.name}"
        n, k = _rows_and_columns(tensor, where)
        if n_rows is not None and n != n_rows:
            raise InvalidRecordError("wrong_tensor", where, f"{n_rows} rows, as the tensors before it have", n)
        n_rows = check_rows(n, part)
        for i, name in enumerate(_names(tensor, k, where)):
            if name in columns:
                raise InvalidRecordError("wrong_tensor", where, "columns of different names", name)
            columns[name] = tensor.values[i::k]
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def check_rows(n: int, part: str) -> int:
    """Return the number of rows of a message, checked against the limit.

    Raise InvalidRecordError `too_large` where there are too many.
    """
    if n > MOST_ROWS:
        raise InvalidRecordError("too_large", part, f"at most {MOST_ROWS} rows", n)
    return n


def _rows_and_columns(tensor: Tensor, where: str) -> tuple[int, int]:
    shape = tensor.shape
    n, k = (*shape, 1) if len(shape) == 1 else shape if len(shape) == 2 else (-1, -1)
    if type(n) is not int or type(k) is not int or n < 0 or k < 0:
        raise InvalidRecordError("wrong_tensor", where, "a shape [rows] or [rows, columns]", shape)
    # Without columns, a shape alone could say that there are any number of rows.
    if k == 0 or n * k != len(tensor.values):
        raise InvalidRecordError("wrong_tensor", where, f"as many values as the shape {shape} says", len(tensor.values))
    return n, k


def _names(tensor: Tensor, k: int, where: str) -> Sequence[str]:
    if tensor.names is None:
        return [tensor.name] if k == 1 else [f"{tensor.name}_{i}" for i in range(k)]
    if len(tensor.names) != k:
        raise InvalidRecordError("wrong_tensor", where, f"{k} names, one for each column", list(tensor.names))
    return tensor.names


def flat(data: Any, where: str) -> list[Any]:
    """Return the values of data that are nested by rows, or are flat already."""
    if not isinstance(data, list):
        raise InvalidRecordError("wrong_tensor", where, "a list of values", data)
    while data and isinstance(data[0], list):
        if not all(isinstance(row, list) for row in data):
            raise InvalidRecordError("wrong_tensor", where, "lists that are nested alike", data)
        data = [value for row in data for value in row]
    return list(data)


def from_raw(datatype: str, raw: bytes, where: str) -> list[Any]:
    """Return the values in the bytes of a tensor; NaN is None, as in JSON."""
    if datatype == "BYTES":
        return _texts(raw, where)
    dtype = RAW_TYPES.get(datatype)
    if dtype is None:
        raise InvalidRecordError("wrong_tensor", where, f"one of {', '.join([*RAW_TYPES, 'BYTES'])}", datatype)
    if len(raw) % np.dtype(dtype).itemsize:
        raise InvalidRecordError("wrong_tensor", where, f"whole values of {datatype}", raw)
    found = np.frombuffer(raw, dtype)
    if datatype == "BF16":
        found = (found.astype("<u4") << 16).view("<f4")
    values: list[Any] = found.tolist()
    return without_nan(values)


def without_nan(values: list[Any]) -> list[Any]:
    """Return the values with None in place of NaN."""
    return [None if value != value else value for value in values]


def text(value: bytes) -> str | bytes:
    """Return a BYTES value as text, or the value itself if it is no text."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _texts(raw: bytes, where: str) -> list[Any]:
    found: list[Any] = []
    at = 0
    while at < len(raw):
        if at + 4 > len(raw) or at + 4 + (n := struct.unpack_from("<I", raw, at)[0]) > len(raw):
            raise InvalidRecordError("wrong_tensor", where, "texts with their lengths in front", raw)
        found.append(text(raw[at + 4 : at + 4 + n]))
        at += 4 + n
    return found

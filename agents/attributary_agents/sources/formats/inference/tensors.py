"""Rows of tensors: a row is an observation, a column a named feature."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attributary_topics import InvalidRecordError

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

"""Protocols of served models: rows to requests, answers to predictions.

A row is written once, as JSON: that text is its key, so that equal rows are sent once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

import jmespath
import orjson

from .errors import ServedError
from .served import Served

MAX_ANSWER = 2**20
"""Bytes that any answer may have, whatever was asked."""

_BYTES_OF_VALUE = 256
"""Bytes that an answer may have further for each value that it is to hold."""

Values = tuple[Any, ...] | dict[str, Any]
"""A row as it is asked: values in the order of the features, or an object."""


class Protocol:
    """Protocol of a served model."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self._names = tuple(name for name, _ in served.features)
        self._answer = jmespath.compile(served.answer) if served.answer else None
        self._template = orjson.loads(served.request) if served.request else None

    @property
    def n_values(self) -> int:
        """How many values the answer has for a row."""
        return len(self.served.classes or ()) or 1

    def answer_bytes(self, n: int) -> int:
        """Return how many bytes the answer for n rows may have."""
        return MAX_ANSWER + n * self.n_values * _BYTES_OF_VALUE

    def values(self, row: Mapping[Any, Any]) -> Values:
        """Return a row as it is asked.

        Raises
        ------
        ServedError
            It cannot be written in the types of the model's tensors.
        """
        if self.served.protocol == "json":
            if not self._names:
                return {str(name): _plain(name, value) for name, value in row.items()}
            return tuple(_plain(name, row.get(name)) for name in self._names)
        return tuple(_WRITERS[kind](name, row.get(name)) for name, kind in self.served.features)

    def key(self, values: Values) -> bytes:
        """Return the key of a row: its values as JSON."""
        return orjson.dumps(values)

    def request(self, rows: Sequence[Values]) -> bytes:
        """Return the body of the request for some rows."""
        if self.served.protocol == "v2":
            return orjson.dumps(self._tensors(rows))
        arrays = [list(row) if isinstance(row, tuple) else row for row in rows]
        objects = [dict(zip(self._names, row, strict=True)) if isinstance(row, tuple) else row for row in rows]
        placed = {"$rows": objects, "$arrays": arrays, "$features": list(self._names)}
        return orjson.dumps(_filled(self._template, placed))

    def _tensors(self, rows: Sequence[Values]) -> dict[str, Any]:
        served, n = self.served, len(rows)
        if served.input is not None:
            kinds = {kind for _, kind in served.features}
            kind = kinds.pop() if len(kinds) == 1 else "FP64"
            shape = [n, len(self._names)]
            inputs = [{"name": served.input, "shape": shape, "datatype": kind, "data": list(chain.from_iterable(rows))}]
        else:
            columns = zip(*rows, strict=True)
            inputs = [
                {"name": name, "shape": [n, 1], "datatype": kind, "data": list(column)}
                for (name, kind), column in zip(served.features, columns, strict=True)
            ]
        return {"inputs": inputs, **({"outputs": [{"name": served.output}]} if served.output else {})}

    def predictions(self, answer: bytes, n: int) -> list[Any]:
        """Return the n predictions in an answer.

        Raises
        ------
        ServedError
            The answer, or a prediction in it, is not what was asked for.
        """
        try:
            content = orjson.loads(answer)
        except ValueError:
            raise ServedError("its answer is no JSON") from None
        rows = self._of_json(content, n) if self._answer else _of_tensor(content, self.served.output, n)
        read = {"probabilities": self._probabilities, "label": _label, "number": _number}[self.served.predicts]
        return [read(row) for row in rows]

    def _of_json(self, content: Any, n: int) -> list[Any]:
        """Return the predictions in an answer in JSON of its own."""
        assert self._answer is not None
        try:
            rows = self._answer.search(content)
        except Exception:  # noqa: BLE001 - an expression of the user's, and whatever an endpoint answers
            rows = None
        if not isinstance(rows, list) or len(rows) != n:
            got = f"{len(rows)} of them" if isinstance(rows, list) else "no list"
            raise ServedError(f"its answer has no {n} predictions at {self.served.answer!r}, but {got}")
        return rows

    def _probabilities(self, row: Any) -> Any:
        classes = self.served.classes or ()
        values: list[Any]
        if isinstance(row, dict):
            values = [row.get(str(label), row.get(_in_json(label))) for label in classes]
        else:
            values = row if isinstance(row, list) else [row]
            if len(values) == 1 and len(classes) == 2 and _is_number(values[0]):
                values = [1.0 - values[0], values[0]]
        if len(values) != len(classes):
            raise ServedError(f"it answers {len(values)} probabilities for {len(classes)} classes")
        if not all(map(_is_number, values)):
            raise ServedError("a probability is no number")
        return dict(zip(classes, map(float, values), strict=True))


@lru_cache(maxsize=1000)
def protocol_of(served: Served) -> Protocol:
    """Return the protocol of a served model."""
    return Protocol(served)


def placeholder(served: Served) -> Any:
    """Return a stand-in of the right kind for an unknown prediction."""
    if served.predicts == "probabilities":
        labels = served.classes or ()
        return dict.fromkeys(labels, 1.0 / len(labels))
    return 0.0 if served.predicts == "number" else 0


def _of_tensor(content: Any, name: str | None, n: int) -> list[Any]:
    outputs = content.get("outputs") if isinstance(content, dict) else None
    if not isinstance(outputs, list) or not all(isinstance(tensor, dict) for tensor in outputs):
        raise ServedError("its answer has no `outputs`")
    tensors = [tensor for tensor in outputs if name is None or tensor.get("name") == name]
    if len(tensors) != 1:
        there = ", ".join(repr(tensor.get("name")) for tensor in outputs[:10])
        wanted = f"{name!r}" if name else "just one"
        raise ServedError(f"its answer has the tensors {there or 'none'}, not {wanted}: name it as `output`")
    data = tensors[0].get("data")
    flat = _flat(data) if isinstance(data, list) else []
    if not n or not flat or len(flat) % n:
        raise ServedError(f"its answer has a tensor of {len(flat)} values for {n} rows")
    width = len(flat) // n
    return flat if width == 1 else [flat[at : at + width] for at in range(0, len(flat), width)]


def _flat(data: list[Any]) -> list[Any]:
    """Return the values of nested lists in order, at any depth."""
    flat: list[Any] = []
    stack = [iter(data)]
    while stack:
        for value in stack[-1]:
            if isinstance(value, list):
                stack.append(iter(value))
                break
            flat.append(value)
        else:
            stack.pop()
    return flat


def _in_json(label: Any) -> str:
    """Return the name of a class as a JSON field: `true`, not `True`."""
    return label if isinstance(label, str) else orjson.dumps(label).decode()


def _label(value: Any) -> Any:
    value = _single(value)
    if not (isinstance(value, str | bool | int) or _is_number(value)):
        raise ServedError("it answers no label")
    return value


def _number(value: Any) -> Any:
    value = _single(value)
    if not _is_number(value):
        raise ServedError("it answers no number")
    return float(value)


def _single(value: Any) -> Any:
    """Return the value of a list of a single value, at any depth."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _filled(template: Any, placed: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        return placed.get(template, template)
    if isinstance(template, dict):
        return {name: _filled(value, placed) for name, value in template.items()}
    return [_filled(value, placed) for value in template] if isinstance(template, list) else template


def _plain(name: Any, value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ServedError(f"feature {name!r} is no number, text or boolean")


def _float(name: str, value: Any) -> float:
    value = _present(name, value)
    if isinstance(value, str):
        raise ServedError(f"feature {name!r} is text, and its tensor holds numbers: BYTES is the type of text")
    return float(value)


def _present(name: str, value: Any) -> Any:
    value = _plain(name, value)
    if value is None:
        raise ServedError(f"feature {name!r} is missing, and no tensor says so: give it a value by `missing`")
    return value


def _int(name: str, value: Any) -> int:
    number = _float(name, value)
    if not number.is_integer():
        raise ServedError(f"feature {name!r} is no whole number, and its tensor holds those alone")
    return int(number)


def _bool(name: str, value: Any) -> bool:
    number = _float(name, value)
    if number not in (0.0, 1.0):
        raise ServedError(f"feature {name!r} is neither true nor false, and its tensor holds those alone")
    return bool(number)


def _text(name: str, value: Any) -> str:
    value = _present(name, value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_WRITERS = {"FP64": _float, "FP32": _float, "INT64": _int, "INT32": _int, "BOOL": _bool, "BYTES": _text}

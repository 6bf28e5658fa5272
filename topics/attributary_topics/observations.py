"""Reads observations: decodes a record into features and label, or raises an error that names field and value."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .codec import decode_json
from .errors import InvalidRecordError

MAX_MODEL_ID_BYTES = 249
"""Longest model id, as long as a topic name in Kafka: an id is a label in metrics and a name in URLs."""

FEATURE_TYPES: dict[str, str] = {
    "number": "a finite number",
    "category": "a string, an integer or a boolean",
    "boolean": "true or false",
    "any": "a finite number, a string or a boolean",
}
"""Types with which a feature can be declared, and what each expects."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Holds one instance: its features, and its label or target.

    Attributes
    ----------
    model_id
        Whose observation it is: the record's key.
    x
        Feature name to value; None where it is missing.
    y
        Label (string, integer, boolean) or target (number).
    """

    model_id: str
    x: dict[str, Any]
    y: str | int | float | bool


def decode_model_id(key: bytes | None) -> str:
    """Return the model id in a record's key.

    Raises
    ------
    InvalidRecordError
        `missing_model_id` or `invalid_model_id`.
    """
    if not key:
        raise InvalidRecordError("missing_model_id", "key", "the model id as UTF-8 text", key)
    if len(key) > MAX_MODEL_ID_BYTES:
        raise InvalidRecordError("invalid_model_id", "key", f"at most {MAX_MODEL_ID_BYTES} bytes", key)
    try:
        model_id = key.decode()
    except UnicodeDecodeError:
        raise InvalidRecordError("invalid_model_id", "key", "UTF-8 text", key) from None
    if any(unicodedata.category(character).startswith("C") for character in model_id):
        raise InvalidRecordError("invalid_model_id", "key", "no control characters", key)
    return model_id


def decode_observation(
    key: bytes | None,
    value: bytes | None,
    *,
    features: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
) -> Observation:
    """Decode and check one record of the observations topic.

    The value is a JSON object with `x`, an object of feature name to value, and `y`. Other fields are left
    to their owners. A `model_id` beside them must agree with the key. A value of `x` that is null or NaN is missing,
    and so is a declared feature that is not there: each is None in the observation.

    Parameters
    ----------
    key, value
        The record's bytes.
    features
        Feature name to one of `FEATURE_TYPES`: others are refused. None takes any feature of type `any`.
    max_bytes
        Longest value that is decoded at all.

    Raises
    ------
    InvalidRecordError
        With the reason, the field, its value and what was expected.
    """
    model_id = decode_model_id(key)
    if not value:
        raise InvalidRecordError("empty_value", "value", "a JSON object with x and y", value)
    if max_bytes is not None and len(value) > max_bytes:
        raise InvalidRecordError("too_large", "value", f"at most {max_bytes} bytes", value)
    data = decode_json(value, nan_is_null=True)
    if not isinstance(data, dict):
        raise InvalidRecordError("wrong_type", "value", "a JSON object with x and y", data)
    if "model_id" in data and data["model_id"] != model_id:
        raise InvalidRecordError("wrong_type", "model_id", f"the record's key, {model_id!r}", data["model_id"])
    return Observation(model_id, _features(data, features), _label(data))


def _features(data: dict[str, Any], declared: Mapping[str, str] | None) -> dict[str, Any]:
    if "x" not in data:
        raise InvalidRecordError("missing_feature", "x", "an object of feature name to value", data)
    x = data["x"]
    if not isinstance(x, dict):
        raise InvalidRecordError("wrong_type", "x", "an object of feature name to value", x)
    if not (x or declared):
        raise InvalidRecordError("missing_feature", "x", "at least one feature", x)
    if declared is not None:
        for name in x:
            if name not in declared:
                expected = "no such feature (declare it below features, or do not send it)"
                raise InvalidRecordError("undeclared_feature", f"x.{name}", expected, x[name])
        if len(x) < len(declared):
            x = {name: x.get(name) for name in declared}
    for name, value in x.items():
        if value is None:
            continue
        kind = "any" if declared is None else declared[name]
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidRecordError("not_finite", f"x.{name}", "a finite number", value)
        if not _fits(kind, value):
            raise InvalidRecordError("wrong_type", f"x.{name}", FEATURE_TYPES[kind], value)
    return x


def _fits(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind != "number"
    if kind == "number":
        return isinstance(value, (int, float))
    if kind == "category":
        return isinstance(value, (int, str))
    return kind == "any" and isinstance(value, (int, float, str))


def _label(data: dict[str, Any]) -> str | int | float | bool:
    y = data.get("y")
    if y is None:
        raise InvalidRecordError("missing_label", "y", "the label or target", y)
    if not isinstance(y, (str, int, float)):
        raise InvalidRecordError("wrong_type", "y", "a string, a number or a boolean", y)
    if isinstance(y, float) and not math.isfinite(y):
        raise InvalidRecordError("not_finite", "y", "a finite number", y)
    return y

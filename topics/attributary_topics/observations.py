"""Reading of observations: features and label of a record.

An error names field and value."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .codec import decode_json
from .errors import InvalidRecordError
from .times import read_time

MAX_MODEL_ID_BYTES = 249
"""Longest model id, as long as a topic name in Kafka: an id is a label in metrics and a name in URLs."""

FEATURE_TYPES: dict[str, str] = {
    "number": "a finite number",
    "category": "a string, an integer or a boolean",
    "boolean": "true or false",
    "any": "a finite number, a string or a boolean",
}
"""Types with which a feature can be declared, and what each expects."""

_TAKEN: dict[str, frozenset[type]] = {
    "number": frozenset((int, float)),
    "category": frozenset((int, str, bool)),
    "boolean": frozenset((bool,)),
    "any": frozenset((int, float, str, bool)),
}
"""Which of the types that JSON is decoded to each takes: these alone, because nothing derived from them is decoded."""

_LABELS = frozenset((str, int, bool))
"""Types of labels of which every value is one; numbers must be finite."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Observation: its features, and its label or target.

    Attributes
    ----------
    model_id
        Whose observation it is: the record's key.
    x
        Feature name to value; None where it is missing.
    y
        Label (string, integer, boolean) or target (number); None where it comes later, or never.
    y_pred
        The prediction that was logged: a label, a number, or class to probability; None where there is none.
    id
        What its label, which comes later, is found by.
    time_ms
        Its time as it says itself, in milliseconds since 1970.
    """

    model_id: str
    x: dict[str, Any]
    y: str | int | float | bool | None
    y_pred: Any = None
    id: str | None = None
    time_ms: int | None = None


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
    """Decode and check a record of the observations topic.

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
    return read_observation(decode_model_id(key), value, features=features, max_bytes=max_bytes)


def read_observation(
    model_id: str, value: bytes | None, *, features: Mapping[str, str] | None = None, max_bytes: int | None = None
) -> Observation:
    """Decode and check the value of a record whose model is known.

    As `decode_observation`, whose errors it raises.
    """
    data = decode_object(model_id, value, "x and y", max_bytes)
    x, y = read_features(data, features), read_label(data)
    return Observation(model_id, x, y, read_prediction(data), None, find_time(data))


def decode_object(model_id: str, value: bytes | None, content: str, max_bytes: int | None) -> dict[str, Any]:
    """Decode the JSON object of a record.

    Parameters
    ----------
    content
        What the object has, in words.

    Raises
    ------
    InvalidRecordError
        It is none, or one of another model, or longer than `max_bytes`.
    """
    if not value:
        raise InvalidRecordError("empty_value", "value", f"a JSON object with {content}", value)
    if max_bytes is not None and len(value) > max_bytes:
        raise InvalidRecordError("too_large", "value", f"at most {max_bytes} bytes", value)
    data = decode_json(value, nan_is_null=True)
    if not isinstance(data, dict):
        raise InvalidRecordError("wrong_type", "value", f"a JSON object with {content}", data)
    if "model_id" in data and data["model_id"] != model_id:
        raise InvalidRecordError("wrong_type", "model_id", f"the record's key, {model_id!r}", data["model_id"])
    return data


def read_features(data: dict[str, Any], declared: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the features in a record's object.

    Raises
    ------
    InvalidRecordError
        One of them cannot be used.
    """
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
        if type(value) not in _TAKEN[kind]:
            raise InvalidRecordError("wrong_type", f"x.{name}", FEATURE_TYPES[kind], value)
    return x


def read_prediction(data: dict[str, Any]) -> Any:
    """Return the prediction logged beside an observation, or None.

    None, too, where it cannot be read.

    It is a label, a finite number, or an object of class to probability. Other producers may have a field of this name
    for something else: what is none of these is left alone.
    """
    y_pred = data.get("y_pred")
    if isinstance(y_pred, dict):
        are_numbers = all(type(p) in (int, float) and math.isfinite(p) for p in y_pred.values())
        return y_pred if y_pred and are_numbers else None
    if isinstance(y_pred, float) and not math.isfinite(y_pred):
        return None
    return y_pred if isinstance(y_pred, (str, int, float)) else None


def find_time(data: dict[str, Any]) -> int | None:
    """Return the time of an observation by its own field, or None.

    In milliseconds since 1970."""
    try:
        return read_time(data["time"]) if data.get("time") is not None else None
    except (ValueError, OverflowError):
        return None


def read_label(data: dict[str, Any]) -> str | int | float | bool:
    """Return the label or target.

    Raises
    ------
    InvalidRecordError
        `missing_label`, `wrong_type` or `not_finite`.
    """
    y = data.get("y")
    if y is None:
        raise InvalidRecordError("missing_label", "y", "the label or target", y)
    if not isinstance(y, (str, int, float)):
        raise InvalidRecordError("wrong_type", "y", "a string, a number or a boolean", y)
    if isinstance(y, float) and not math.isfinite(y):
        raise InvalidRecordError("not_finite", "y", "a finite number", y)
    return y

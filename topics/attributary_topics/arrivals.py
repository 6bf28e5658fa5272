"""Records beside whole observations: labels, requests, responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import InvalidRecordError
from .observations import (
    Observation,
    decode_object,
    read_features,
    read_label,
    read_prediction,
)
from .origins import LABEL, OBSERVATION, RECORD_KINDS, REQUEST, RESPONSE
from .times import read_time

MAX_ID_LENGTH = 1000
"""Longest id of an observation, in characters."""


@dataclass(frozen=True, slots=True)
class LateLabel:
    """Holds a label by itself, with the id of its observation."""

    model_id: str
    id: str
    y: Any
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Response:
    """Prediction by itself, with the id of the request that it answers."""

    model_id: str
    id: str
    y_pred: Any
    time_ms: int | None


@dataclass(frozen=True, slots=True)
class Needs:
    """Needs of a model: parts of its observations, and kinds of its records.

    An observation can have an id, a label and a logged prediction.

    With `unread` they may have a label, which nobody reads.
    """

    id: bool = False
    label: bool = True
    prediction: bool = False
    unread: bool = False
    kinds: frozenset[str] = frozenset({OBSERVATION})


def kind_of_record(header: bytes | None) -> str:
    """Return the kind of a record, by its header `attributary-record`.

    Raises
    ------
    InvalidRecordError
        `unexpected_record`.
    """
    kind = OBSERVATION if header is None else header.decode("utf-8", "replace")
    if kind not in RECORD_KINDS:
        expected = f"one of {', '.join(RECORD_KINDS)}"
        raise InvalidRecordError("unexpected_record", "attributary-record", expected, header)
    return kind


def decode_arrival(
    model_id: str,
    value: bytes | None,
    kind: str,
    needs: Needs,
    *,
    features: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
) -> Observation | LateLabel | Response:
    """Decode and check a record of a model with partial observations.

    They come in parts, or without labels.

    Parameters
    ----------
    kind
        One of `RECORD_KINDS`.
    features, max_bytes
        As for `decode_observation`.

    Raises
    ------
    InvalidRecordError
        With the reason, the field, its value and what was expected.
    """
    if kind not in needs.kinds:
        expected = f"{' or '.join(sorted(needs.kinds))}: the configuration has no more for the model {model_id!r}"
        raise InvalidRecordError("unexpected_record", "attributary-record", expected, kind)
    data = decode_object(model_id, value, _CONTENT[kind], max_bytes)
    time_ms = _time(data)
    if kind == LABEL:
        return LateLabel(model_id, _id(data), read_label(data), time_ms)
    if kind == RESPONSE:
        return Response(model_id, _id(data), _prediction(data), time_ms)
    if not (needs.label or needs.unread) and data.get("y") is not None:
        expected = "none: the labels of this model come by themselves, or never (labels, mode)"
        raise InvalidRecordError("unexpected_label", "y", expected, data["y"])
    key = _id(data) if needs.id or kind == REQUEST else None
    x, y = read_features(data, features), read_label(data) if needs.label else None
    must_have = needs.prediction and kind == OBSERVATION  # the response brings that of a request
    return Observation(model_id, x, y, _prediction(data) if must_have else read_prediction(data), key, time_ms)


_CONTENT = {OBSERVATION: "x", REQUEST: "x and id", LABEL: "id and y", RESPONSE: "id and y_pred"}


def _time(data: dict[str, Any]) -> int | None:
    if data.get("time") is None:
        return None
    try:
        return read_time(data["time"])
    except (ValueError, OverflowError):
        expected = "a number since 1970 or a time in RFC 3339"
        raise InvalidRecordError("wrong_time", "time", expected, data["time"]) from None


def _id(data: dict[str, Any]) -> str:
    value = data.get("id")
    if value is None or value == "":
        raise InvalidRecordError("missing_id", "id", "the id by which observation and label are joined", value)
    if isinstance(value, bool) or not isinstance(value, (str, int)) or len(str(value)) > MAX_ID_LENGTH:
        raise InvalidRecordError(
            "wrong_type", "id", f"a text of at most {MAX_ID_LENGTH} characters, or an integer", value
        )
    return str(value)


def _prediction(data: dict[str, Any]) -> Any:
    y_pred = read_prediction(data)
    if y_pred is None:
        expected = "the logged prediction: a label, a finite number, or an object of class to probability"
        raise InvalidRecordError("missing_prediction", "y_pred", expected, data.get("y_pred"))
    return y_pred

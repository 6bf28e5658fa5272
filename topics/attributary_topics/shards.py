"""Estimates of the shards of a sharded model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from .codec import decode_json, optional_fields
from .errors import InvalidRecordError
from .events import Source, SourceOrigin
from .observations import decode_model_id


@dataclass(frozen=True, slots=True)
class FeatureEstimate:
    """Importance of a feature in a shard, and its standard error.

    null where that is not known."""

    value: float
    std_error: float | None


@dataclass(frozen=True, slots=True)
class ShardImportance:
    """Estimates of an explainer of a shard.

    A shard has the share of a model's observations that lies on a partition.

    Attributes
    ----------
    parameters
        Digest of what the explainer was made with: estimates by other parameters are of something else.
    removal, loss, loss_unit, loss_largest, alpha, model_loss, baseline_loss, stale
        As for `ImportanceEvent`.
    observation
        Number of the shard's observation, from 1.
    n_observations
        Observations of the shard that its importance is made of.
    n_represented
        The same with those that were passed over, for which the explained ones stand.
    degrees_of_freedom
        Those of the standard errors; null where they are not known.
    timestamp_ms
        Kafka's timestamp of the observation.
    source
        Record of the observation; its partition is the shard.
    """

    model_id: str
    model_version: str
    explainer: str
    parameters: str
    removal: str
    loss: str
    loss_unit: str
    loss_largest: float | None
    alpha: float
    observation: int
    n_observations: int
    n_represented: int
    degrees_of_freedom: float | None
    model_loss: float | None
    baseline_loss: float | None
    stale: bool
    timestamp_ms: int
    features: dict[str, FeatureEstimate]
    source: Source


LARGEST = 1e150
"""Largest importance: as far as its square is a number, too."""

MOST = 2**53
"""Largest count and offset: sums of them, over thousands of shards, are integers of 64 bits, too."""

LEAST_ALPHA = 1e-18
"""Smallest smoothing factor: below it nothing fades in any stream, and what is computed with it underflows."""

_TEXTS = ("model_id", "model_version", "explainer", "parameters", "removal", "loss", "loss_unit")
_PLACE = ("topic", "partition", "offset")
_COUNTS = ("observation", "n_observations", "n_represented")
_NUMBERS = ("loss_largest", "degrees_of_freedom", "model_loss", "baseline_loss")


def decode_shard(key: bytes | None, value: bytes | None, *, max_bytes: int | None = None) -> ShardImportance:
    """Decode and check a record of the topic of shards.

    Raises
    ------
    InvalidRecordError
        With the reason, the field, its value and what was expected.
    """
    model_id = decode_model_id(key)
    expected = "what a worker writes of a shard"
    if not value:
        raise InvalidRecordError("empty_value", "value", expected, value)
    if max_bytes is not None and len(value) > max_bytes:
        raise InvalidRecordError("too_large", "value", f"at most {max_bytes} bytes", value)
    data = decode_json(value)
    names = {one.name for one in fields(ShardImportance)}
    if not isinstance(data, dict) or data.keys() != names:
        raise _wrong("value", f"{expected}: an object with {', '.join(sorted(names))}", data)
    for name in _TEXTS:
        _check(isinstance(data[name], str), name, "a text", data[name])
    _check(data["model_id"] == model_id, "model_id", f"the record's key, {model_id!r}", data["model_id"])
    for name in _COUNTS:
        is_count = type(data[name]) is int and 0 < data[name] <= MOST
        _check(is_count, name, f"an integer from 1 to {MOST}", data[name])
    for name in _NUMBERS:
        _check(data[name] is None or _is_number(data[name]), name, "a finite number or null", data[name])
    freedom = data["degrees_of_freedom"]
    _check(freedom is None or freedom > 0, "degrees_of_freedom", "a number above 0", freedom)
    is_alpha = _is_number(data["alpha"]) and LEAST_ALPHA <= data["alpha"] <= 1
    _check(is_alpha, "alpha", f"a number from {LEAST_ALPHA:g} to 1", data["alpha"])
    _check(type(data["stale"]) is bool, "stale", "true or false", data["stale"])
    _check(type(data["timestamp_ms"]) is int, "timestamp_ms", "an integer", data["timestamp_ms"])
    given = data["features"]
    _check(isinstance(given, dict), "features", "an object of feature to value and std_error", given)
    features = {name: _feature(f"features.{name}", one) for name, one in given.items()}
    return ShardImportance(**{**data, "features": features, "source": _source(data["source"])})


def _feature(field: str, data: Any) -> FeatureEstimate:
    _check(isinstance(data, dict) and data.keys() == {"value", "std_error"}, field, "value and std_error", data)
    value, error = data["value"], data["std_error"]
    _check(_is_number(value) and abs(value) <= LARGEST, f"{field}.value", f"a number up to {LARGEST:g}", value)
    is_error = error is None or (_is_number(error) and 0 <= error <= LARGEST)
    _check(is_error, f"{field}.std_error", f"null or a number from 0 to {LARGEST:g}", error)
    return FeatureEstimate(float(value), None if error is None else float(error))


def _source(data: Any) -> Source:
    _check_place(data, Source, "source")
    origin, time = data.get("origin"), data.get("event_time")
    if origin is not None:
        _check_place(origin, SourceOrigin, "source.origin")
    _check(time is None or isinstance(time, str), "source.event_time", "a text", time)
    place = {name: data[name] for name in _PLACE}
    return Source(**place, origin=None if origin is None else SourceOrigin(**origin), event_time=time)


def _check_place(data: Any, kind: type[Source] | type[SourceOrigin], field: str) -> None:
    optional = optional_fields(kind)
    needed = {one.name for one in fields(kind)} - optional
    is_like = isinstance(data, dict) and needed <= data.keys() <= needed | optional
    _check(is_like, field, f"an object with {', '.join(sorted(needed))}", data)
    _check(isinstance(data["topic"], str), f"{field}.topic", "a text", data["topic"])
    for name in ("partition", "offset"):
        is_place = type(data[name]) is int and 0 <= data[name] <= MOST
        _check(is_place, f"{field}.{name}", f"an integer from 0 to {MOST}", data[name])


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _check(is_right: bool, field: str, expected: str, value: Any) -> None:
    if not is_right:
        raise _wrong(field, expected, value)


def _wrong(field: str, expected: str, value: Any) -> InvalidRecordError:
    return InvalidRecordError("wrong_type", field, expected, value)

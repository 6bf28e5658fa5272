"""Reading of new versions of models from the records of their topic.

An error names field and value.

Only the shape is checked here: whether the class exists and may be named is for the worker to say.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from .codec import decode_json
from .errors import InvalidRecordError
from .observations import decode_model_id

MAX_VERSION_LENGTH = 200
MAX_DEPTH = 32
"""Deepest nesting of a model's arguments: a model in a model in a model needs six."""

MLFLOW_VERSION = r"models:/[^/@:\x00]+/[1-9][0-9]*"
"""A version of a model of MLflow's registry, exactly: an alias may name another one tomorrow."""

_WAYS = ("model", "factory", "artefact", "mlflow")
_PINNED = ("artefact", "mlflow")
"""Ways that name files, whose hash a record gives."""
_ANY_OF = (
    "one of `model` (a class, steps, a factory with params, or an address as `served`), `factory` (module:function), "
    "`artefact` (a file) with `sha256` or `mlflow` (models:/NAME/VERSION, or a folder) with `sha256`"
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Describes a new version of a model.

    Attributes
    ----------
    model_id
        The record's key.
    version
        Name of the version, in events and metrics.
    spec
        How the model is made, in one form for equal meanings: `{"model": {"class": …, "params": …}}`, the same with a
        list of steps, `{"model": {"served": address, …}}`, `{"factory": "module:function", "params": …}` (without
        params where there are none), `{"artefact": path, "sha256": hexadecimal}`, or
        `{"mlflow": "models:/NAME/VERSION", "sha256": hexadecimal}` with the version of a registry or a folder, never an
        alias.
    """

    model_id: str
    version: str
    spec: dict[str, Any]


def decode_deployment(key: bytes | None, value: bytes | None, *, max_bytes: int | None = None) -> Deployment:
    """Decode and check a record of the models topic.

    The value is a JSON object with `version` and exactly one way to make the model; other fields are refused, but
    for a `model_id` that agrees with the key.

    Raises
    ------
    InvalidRecordError
        With the reason, the field, its value and what was expected.

    Examples
    --------
    >>> decode_deployment(b"credit", b'{"version": "2", "model": {"class": "river.naive_bayes.GaussianNB"}}').spec
    {'model': {'class': 'river.naive_bayes.GaussianNB', 'params': {}}}
    """
    model_id = decode_model_id(key)
    if not value:
        raise InvalidRecordError("empty_value", "value", f"a JSON object with `version` and {_ANY_OF}", value)
    if max_bytes is not None and len(value) > max_bytes:
        raise InvalidRecordError("too_large", "value", f"at most {max_bytes} bytes", value)
    data = decode_json(value)
    if not isinstance(data, dict):
        raise _wrong("value", f"a JSON object with `version` and {_ANY_OF}", data)
    if data.get("model_id", model_id) != model_id:
        raise _wrong("model_id", f"the record's key, {model_id!r}", data["model_id"])
    for name in data:
        if name not in ("model_id", "version", "sha256", *_WAYS):
            hint = f" (put {name} below model)" if name in ("class", "params") else ""
            raise _wrong(name, f"only version, model, factory, artefact, mlflow and sha256{hint}", data[name])
    return Deployment(model_id, _version(data.get("version")), _spec(data))


def _version(version: Any) -> str:
    if not isinstance(version, str) or not 0 < len(version) <= MAX_VERSION_LENGTH:
        raise _wrong("version", f"a text of 1 to {MAX_VERSION_LENGTH} characters", version)
    if any(unicodedata.category(character).startswith("C") for character in version):
        raise _wrong("version", "a text without control characters", version)
    return version


def _spec(data: dict[str, Any]) -> dict[str, Any]:
    given = [way for way in _WAYS if way in data]
    if len(given) != 1:
        raise _wrong("value", f"exactly {_ANY_OF}", data)
    (way,) = given
    if way not in _PINNED and "sha256" in data:
        raise _wrong("sha256", "no hash without an artefact", data["sha256"])
    if way == "factory":
        return _factory("", {"factory": data["factory"]})
    if way in _PINNED:
        of_registry = str(data[way]).startswith("models:") and way == "mlflow"
        pattern, expected = (
            (MLFLOW_VERSION, "models:/NAME/VERSION, and no alias")
            if of_registry
            else (r"[^\x00]+", "the path of a file" if way == "artefact" else "models:/NAME/VERSION or a folder's path")
        )
        return {
            way: _text(way, data[way], pattern, expected),
            "sha256": _text("sha256", data.get("sha256"), r"[0-9a-f]{64}", "64 hexadecimal digits in lower case"),
        }
    model = data["model"]
    if isinstance(model, list):
        if not model:
            raise _wrong("model", "at least one step", model)
        return {"model": [_step(f"model[{i}]", step) for i, step in enumerate(model)]}
    if isinstance(model, dict) and "factory" in model:
        return _factory("model.", model)
    if isinstance(model, dict) and "served" in model:
        return {"model": _served(model)}
    return {"model": _step("model", model)}


def _factory(field: str, given: dict[str, Any]) -> dict[str, Any]:
    params = _params(field, given, "factory")
    path = _text(f"{field}factory", given["factory"], r"[^:\s]+:[^:\s]+", "module:function")
    return {"factory": path, **({"params": params} if params else {})}


def _served(given: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a served model in a record.

    The worker says which fields there are."""
    _text("model.served", given["served"], r"https?://[^\s@?#\\]+", "an address, http://HOST:PORT/PATH")
    for name, value in given.items():
        _check_depth(f"model.{name}", value, MAX_DEPTH)
    return dict(given)


def _step(field: str, step: Any) -> dict[str, Any]:
    if not isinstance(step, dict):
        raise _wrong(field, "an object with `class` and `params`", step)
    params = _params(f"{field}.", step, "class")
    path = _text(f"{field}.class", step.get("class"), r"[^:\s]+", "the dotted path of a class")
    return {"class": path, "params": params}


def _params(field: str, given: dict[str, Any], way: str) -> dict[str, Any]:
    """Return the arguments of a class or a factory."""
    for name in given:
        if name not in (way, "params"):
            raise _wrong(f"{field}{name}", f"only {way} and params", given[name])
    params = given.get("params", {})
    if not isinstance(params, dict):
        raise _wrong(f"{field}params", "an object of argument to value", params)
    _check_depth(f"{field}params", params, MAX_DEPTH)
    return params


def _check_depth(field: str, value: Any, left: int) -> None:
    if left == 0:
        raise _wrong(field, f"values nested at most {MAX_DEPTH} deep", value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRecordError("not_finite", field, "a finite number", value)
    if isinstance(value, dict):
        for item in value.values():
            _check_depth(field, item, left - 1)
    elif isinstance(value, list):
        for item in value:
            _check_depth(field, item, left - 1)


def _text(field: str, value: Any, pattern: str, expected: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise _wrong(field, expected, value)
    return value


def _wrong(field: str, expected: str, value: Any) -> InvalidRecordError:
    return InvalidRecordError("wrong_type", field, expected, value)

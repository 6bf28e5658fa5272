"""Reads settings from environment variables.

`ATTRIBUTARY_KAFKA__BROKERS=a:9092,b:9092` sets `kafka.brokers`.

Names are those of the keys, with two underscores between section and key. A list is written `a,b` or as JSON, a mapping
as JSON or one variable for each of its keys; everything else as in the file.
"""

from __future__ import annotations

import json
import os
from typing import Any

from attributary_explainers.wording import did_you_mean

from .schema import Form, forms, holds_secret, inside, keys_of, sections
from .settings import Config

PREFIX = "ATTRIBUTARY_"

_NO_SETTINGS = ("ATTRIBUTARY_CONFIG", "ATTRIBUTARY_KAFKA_LIB")
"""Variables that are read elsewhere: how the process is started."""


def with_environment(data: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a file, overridden by environment variables.

    A model's id, or another key that users choose, is meant in the file's spelling.

    Raises
    ------
    ValueError
        A variable names no setting, or its text is not what its key takes.
    """
    others = {name for name in os.environ if name.startswith(PREFIX)} - {*_NO_SETTINGS, *_settings()}
    if others:
        known = [PREFIX + "__".join((*path, key)).upper() for path, keys in sections() for key in keys]
        unknown = sorted(others)
        remedy = did_you_mean(unknown[0], known) or ": see `attributary config example`"
        raise ValueError(f"unknown environment variable {', '.join(unknown)}{remedy}")
    found: dict[str, Any] = {}
    for variable in _settings():
        _put(found, variable, os.environ[variable], data)
    return _merged(data, found)


def _settings() -> list[str]:
    """Return the names of the variables that set something."""
    ours = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in _NO_SETTINGS)
    return [name for name in ours if _parts(name)[0].lower() in Config.model_fields]


def _parts(variable: str) -> list[str]:
    return variable[len(PREFIX) :].split("__")


def _put(found: dict[str, Any], variable: str, text: str, given: Any) -> None:
    """Set the value of a variable in `found`."""
    *parents, last = _parts(variable)
    place, possible = found, forms()
    for part in parents:
        key = _key(part, possible, given)
        given = given.get(key) if isinstance(given, dict) else None
        possible = [one for form in possible for one in inside(form, key)]
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise ValueError(f"{variable}: what it belongs to is set as a whole by {variable.rpartition('__')[0]}")
    key = _key(last, possible, given)
    place[key] = _value(variable, text, [one for form in possible for one in inside(form, key)])


def _key(part: str, possible: list[Form], given: Any) -> str:
    """Return the key that a part of a variable's name means."""
    known = [*keys_of(possible), *(map(str, given) if isinstance(given, dict) else ())]
    return next((key for key in known if key.lower() == part.lower()), part.lower() if part.isupper() else part)


def _value(variable: str, text: str, possible: list[Form]) -> Any:
    """Return the value that a text means where values have these forms."""
    kinds = {form.get("type", "string" if "enum" in form else "any") for form in possible}
    if text == "null" and "null" in kinds:
        return None
    begins = text.lstrip()[:1]
    if (begins in ("[", "{") and kinds & {"object", "array"}) or ("object" in kinds and "string" not in kinds):
        try:
            return json.loads(text)
        except ValueError as error:
            # Without the text: it may hold a secret.
            where = f"{error.msg}, character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise ValueError(
                f"{variable}: expected JSON, or one variable for each key below it, such as {variable}__KEY ({where})"
            ) from None
    if "array" in kinds and "object" not in kinds:
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        return [None if part == "null" else part for part in parts]
    if "any" in kinds:
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            merged[key] = _merged(below[key], above[key])
    return merged


def forget_settings() -> None:
    """Remove all settings from the environment, for the demo and tests.

    A broker that a shell exports is somebody's cluster.
    """
    for name in _settings():
        del os.environ[name]


def forget_secrets() -> None:
    """Remove from the environment the variables that hold secrets, once read.

    No child that is started by a command inherits them. Linux goes on showing what this process was started with, to
    its user and to root, at /proc/PID/environ: a secret in a file is in no environment.
    """
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        if holds_secret(tuple(_parts(name.lower()))) or "@" in os.environ[name].partition("://")[2]:
            del os.environ[name]

"""Reads settings from environment variables: `ATTRIBUTARY_KAFKA__BROKERS=a:9092,b:9092` sets `kafka.brokers`.

Names are those of the keys, with two underscores between section and key. A list is written `a,b` or as JSON, a mapping
as JSON or one variable for each of its keys; everything else as in the file.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from .keys import inside, is_section, keys_of, members
from .secrets import holds_secret

PREFIX = "ATTRIBUTARY_"

NO_SETTINGS = frozenset({"ATTRIBUTARY_CONFIG", "ATTRIBUTARY_KAFKA_LIB"})
"""Variables that are read elsewhere: how the process is started."""


class Environment(PydanticBaseSettingsSource):
    """Gives the settings of the environment as nested mappings.

    Parameters
    ----------
    given
        What the file says: a model's id, or another key that users choose, is meant in the file's spelling.
    """

    def __init__(self, settings_cls: type[BaseSettings], given: Any) -> None:
        super().__init__(settings_cls)
        self._given = given

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """Return the value of one key of the root."""
        return self().get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return what the variables set.

        Raises
        ------
        ValueError
            A variable's text is not what its key takes.
        """
        found: dict[str, Any] = {}
        for variable in _variables(self.settings_cls):
            _put(found, variable, os.environ[variable], self.settings_cls, self._given)
        return found


def forget_settings(settings_cls: type[BaseSettings]) -> None:
    """Remove all settings from the environment: of demo and tests, which have brokers of their own.

    A broker that a shell exports is somebody's cluster.
    """
    for variable in _variables(settings_cls):
        del os.environ[variable]


def _variables(settings_cls: type[BaseSettings]) -> list[str]:
    """Return the names of the variables that set something."""

    def sets(variable: str) -> bool:
        section = variable.removeprefix(PREFIX).split("__")[0].lower()
        return variable.startswith(PREFIX) and variable not in NO_SETTINGS and section in settings_cls.model_fields

    return sorted(filter(sets, os.environ))


def _put(found: dict[str, Any], variable: str, text: str, root: type[BaseModel], given: Any) -> None:
    """Set in `found` what one variable says."""
    annotation: Any = root
    *parents, last = variable.removeprefix(PREFIX).split("__")
    place = found
    for part in parents:
        key, annotation = _step(annotation, part, given)
        given = given.get(key) if isinstance(given, dict) else None
        place = place.setdefault(key, {})
        if not isinstance(place, dict):
            raise ValueError(f"{variable}: what it belongs to is set as a whole by {variable.rpartition('__')[0]}")
    key, annotation = _step(annotation, last, given)
    place[key] = _value(variable, text, annotation)


def _step(annotation: Any, part: str, given: Any) -> tuple[str, Any]:
    """Return the key that a part of a variable's name means, and the annotation of its value."""
    kinds = members(annotation)
    known = [key for kind in kinds if is_section(kind) for key in keys_of(kind)]
    known += [str(key) for key in given] if isinstance(given, dict) else []
    key = next((key for key in known if key.lower() == part.lower()), part.lower() if part.isupper() else part)
    return key, next((found for kind in kinds if (found := inside(kind, key)) is not None), None)


def _value(variable: str, text: str, annotation: Any) -> Any:
    """Return the value that a text means where the annotation stands."""
    kinds = members(annotation)
    origins = [get_origin(kind) or kind for kind in kinds]
    nullable = type(None) in get_args(annotation)
    if text == "null" and nullable:
        return None
    if not kinds or set(kinds) & {SecretStr, Path}:
        return text
    if Any in kinds:
        return _json_or_text(text)
    nested = [kind for kind in kinds if is_section(kind) or get_origin(kind) is dict]
    if (nested or list in origins) and text.lstrip()[:1] in ("[", "{"):
        return _json(variable, text)
    if not nested and (list in origins or tuple in origins):
        parts = [part.strip() for part in text.strip("[]").split(",")] if text.strip() else []
        return [None if part == "null" else part for part in parts]
    if nested and str not in kinds:
        return _json(variable, text)
    return text


def _json(variable: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        # Without the text: it may hold a secret.
        where = f"{error.msg}, character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise ValueError(
            f"{variable}: expected JSON, or one variable for each key below it, such as {variable}__KEY ({where})"
        ) from None


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def forget_secrets(root: type[BaseModel]) -> None:
    """Remove from the environment the variables that hold secrets, once read.

    No child that is started by a command inherits them. Linux goes on showing what this process was started with, to
    its user and to root, at /proc/PID/environ: a secret in a file is in no environment.
    """
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        path = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if holds_secret(root, path) or "@" in os.environ[name].partition("://")[2]:
            del os.environ[name]

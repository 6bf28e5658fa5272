"""Lookup of keys in the JSON Schema of the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from .settings import Config

Form = Mapping[str, Any]
"""A JSON Schema without `$ref` and `anyOf`: one way to write a value. Any value fits an empty one."""


@cache
def _whole() -> Form:
    return Config.model_json_schema()


def forms(node: Form | None = None) -> list[Form]:
    """Return the forms of a part of the schema, by default of the whole."""
    if node is None:
        return [_whole()]
    if "$ref" in node:
        parts = [_whole()["$defs"][node["$ref"].rpartition("/")[2]]]
    elif "anyOf" in node:
        parts = node["anyOf"]
    else:
        return [node]
    described = {"description": node["description"]} if "description" in node else {}
    return [{**form, **described} for part in parts for form in forms(part)]


def inside(form: Form, key: object) -> list[Form]:
    """Return the forms of the value at a key of a section, mapping or list."""
    node = form.get("properties", {}).get(str(key))
    if node is None and isinstance(key, int):
        items = form.get("prefixItems", ())
        node = items[key] if key < len(items) else form.get("items")
    if node is None:
        node = _others(form)
    return [] if node is None else forms(node)


def at(path: Iterable[object]) -> list[Form]:
    """Return the forms of the value at a path."""
    found = forms()
    for key in path:
        found = [one for form in found for one in inside(form, key)]
    return found


def keys_of(found: Iterable[Form]) -> list[str]:
    """Return the keys that sections of these forms have."""
    return list(dict.fromkeys(key for form in found for key in form.get("properties", ())))


def sections(form: Form | None = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield the path and keys of each section, `<id>` for a key of the user's."""
    if keys := keys_of([form := form or _whole()]):
        yield path, keys
    others = _others(form)
    for key in (*keys, *(["<id>"] if others else [])):
        for one in forms(others) if key == "<id>" else inside(form, key):
            yield from sections(one, (*path, key))


def holds_secret(path: tuple[object, ...]) -> bool:
    """Return whether the value at a path is a secret, or may hold a secret."""
    found = forms()
    for key in path:
        if any(map(_is_secret, found)):
            return True
        found = [one for form in found for one in inside(form, key)]
    return any(map(_has_secret, found))


def _has_secret(form: Form) -> bool:
    below = [*form.get("properties", {}).values(), *filter(None, [_others(form)])]
    return _is_secret(form) or any(_has_secret(one) for node in below for one in forms(node))


def _is_secret(form: Form) -> bool:
    return form.get("format") == "password"


def _others(form: Form) -> Form | None:
    """Return the schema of values at keys that users choose, or None."""
    others = next(iter(form.get("patternProperties", {}).values()), form.get("additionalProperties"))
    return {} if others is True else others or None

"""Detection of Avro schemas by which a few bytes become a huge value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def find_endless(schema: Any, named: Mapping[str, Any]) -> str | None:
    """Return the path of an array whose items take no bytes, or None.

    Such items are nulls, for example.

    Of such an array the number of items alone is written, so that it may be larger than any memory.

    Parameters
    ----------
    named
        Types by their full names, as the schema refers to them.
    """
    for name, kind in [("value", schema), *named.items()]:
        if (path := _find(kind, named, name)) is not None:
            return path
    return None


def _find(kind: Any, named: Mapping[str, Any], path: str) -> str | None:
    if isinstance(kind, list):
        return next((found for one in kind if (found := _find(one, named, path))), None)
    if not isinstance(kind, dict):
        return None  # by its name: it is looked at by itself
    if kind["type"] == "array" and _takes_nothing(kind["items"], named, frozenset()):
        return path
    inner = [(path, kind[key]) for key in ("items", "values") if key in kind]
    inner += [(f"{path}.{field['name']}", field["type"]) for field in kind.get("fields", ())]
    return next((found for where, one in inner if (found := _find(one, named, where))), None)


def _takes_nothing(kind: Any, named: Mapping[str, Any], around: frozenset[str]) -> bool:
    """Return whether a value of a type is written without any byte.

    Of a union the branch is written, so that it takes a byte.
    """
    if isinstance(kind, str) and kind in named:
        if kind in around:  # no value of a type that must hold itself has an end
            return True
        return _takes_nothing(named[kind], named, around | {kind})
    if isinstance(kind, str):
        return kind == "null"
    if not isinstance(kind, dict):
        return False
    if kind["type"] == "record":
        return all(_takes_nothing(field["type"], named, around | {kind["name"]}) for field in kind["fields"])
    if kind["type"] == "fixed":
        return bool(kind["size"] == 0)
    return bool(kind["type"] == "null")

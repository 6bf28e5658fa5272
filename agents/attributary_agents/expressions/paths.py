"""Names of a record that an expression reads.

A field with a role is no feature.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jmespath

from .expressions import is_expression_of_names, rewrite

_ELSEWHERE = (
    "filter_projection",
    "flatten",
    "index_expression",
    "pipe",
    "projection",
    "slice",
    "subexpression",
    "value_projection",
)
"""Nodes of which all but the first child read what the first one has found, and not the record."""


def paths_read(text: str) -> set[tuple[str, ...]]:
    """Return the paths of a record that a valid expression reads.

    A path begins at the top of the record, and goes as far as the expression is names alone.

    Examples
    --------
    >>> sorted(paths_read("to_number(after.count) || $key"))
    [('after', 'count')]
    """
    if is_expression_of_names(text):
        return set() if text.startswith("$") else {tuple(text.split("."))}
    return {path for path in _paths(jmespath.compile(rewrite(text)[0]).parsed) if not path[0].startswith("$")}


def _paths(node: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if path := _chain(node):
        yield path
    elif node["type"] == "expref":
        return
    elif node["type"] in _ELSEWHERE:
        yield from _paths(node["children"][0])
    else:
        for child in node["children"]:
            if isinstance(child, dict):
                yield from _paths(child)


def _chain(node: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names that a node of dotted names consists of, or ()."""
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] != "subexpression":
        return ()
    parts = [_chain(child) for child in node["children"]]
    return tuple(name for part in parts for name in part) if all(parts) else ()

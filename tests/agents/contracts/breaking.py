"""Finds what breaks readers and writers between two versions of a JSON Schema: all but optional additions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_TEXTS = {"$schema", "$id", "$defs", "title", "description", "examples"}


def breaking(old: Schema, new: Schema) -> list[str]:
    """Return what breaks, each with its place: removed, required, narrowed, widened or changed parts.

    Allowed are further optional properties, further values of an enumeration, further kinds of events (branches of a
    `oneOf` of references), and other texts.
    """
    return list(_Comparison(old, new).of(old, new, ""))


class _Comparison:
    def __init__(self, old: Schema, new: Schema) -> None:
        self._old, self._new = old, new
        self._seen: set[tuple[str, str]] = set()

    def of(self, old: Any, new: Any, at: str) -> Iterator[str]:
        if not isinstance(old, dict) or not isinstance(new, dict):
            if old != new:
                yield f"{at or 'the whole'}: was {old!r}, is {new!r}"
            return
        if "$ref" in old or "$ref" in new:
            places = str(old.get("$ref")), str(new.get("$ref"))
            if places in self._seen:
                return
            self._seen.add(places)
            old, new = _resolved(old, self._old), _resolved(new, self._new)
        yield from self._properties(old, new, at)
        for name in sorted((old.keys() | new.keys()) - _TEXTS - {"properties", "required", "$ref"}):
            there = f"{at}/{name}"
            if name not in old or name not in new:
                yield f"{there}: {'is new' if name in new else 'has gone'}"
            elif name == "enum":
                yield from (f"{there}: {value!r} has gone" for value in old[name] if value not in new[name])
            elif name in ("anyOf", "oneOf"):
                yield from self._branches(old[name], new[name], there)
            elif name in ("items", "additionalProperties"):
                yield from self.of(old[name], new[name], there)
            elif name == "type":
                if {*_listed(old[name])} != {*_listed(new[name])}:
                    yield f"{there}: was {old[name]!r}, is {new[name]!r}"
            elif old[name] != new[name]:
                yield f"{there}: was {old[name]!r}, is {new[name]!r}"

    def _properties(self, old: Schema, new: Schema, at: str) -> Iterator[str]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed_before, needed_after = {*old.get("required", ())}, {*new.get("required", ())}
        for name in sorted(before.keys() - after.keys()):
            yield f"{at}/{name}: has gone"
        for name in sorted(needed_after - needed_before):
            yield f"{at}/{name}: is required now"
        for name in sorted(needed_before - needed_after):
            yield f"{at}/{name}: is not always there any more"
        for name in sorted(before.keys() & after.keys()):
            yield from self.of(before[name], after[name], f"{at}/{name}")

    def _branches(self, old: list[Schema], new: list[Schema], at: str) -> Iterator[str]:
        """Compare alternatives in their order: those behind are additions, which only kinds of events may be."""
        for number, (before, after) in enumerate(zip(old, new, strict=False)):
            yield from self.of(before, after, f"{at}/{number}")
        if len(new) < len(old):
            yield f"{at}: {len(old) - len(new)} alternatives have gone"
        yield from (f"{at}: {branch!r} is new" for branch in new[len(old) :] if "$ref" not in branch)


def _resolved(schema: Schema, root: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    found: Any = root
    for part in schema["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    assert isinstance(found, dict)
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]

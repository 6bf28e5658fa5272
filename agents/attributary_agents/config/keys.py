"""Walks the schema of the configuration: which keys a section has, and where in it a key belongs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def members(annotation: Any) -> list[Any]:
    """Return the types that an annotation is made of: those of a union without None, or the one that it is."""
    if get_origin(annotation) is Annotated:
        return members(get_args(annotation)[0])
    if isinstance(annotation, type) or get_origin(annotation) in (dict, list, tuple) or not get_args(annotation):
        return [] if annotation is type(None) else [annotation]
    if all(isinstance(choice, str) for choice in get_args(annotation)):  # Literal
        return [annotation]
    return [one for part in get_args(annotation) for one in members(part)]


def is_section(kind: Any) -> bool:
    """Return whether a type is a section, whose keys are known."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def keys_of(section: type[BaseModel]) -> dict[str, Any]:
    """Return the keys of a section as they are written, each with the annotation of its value."""
    return {
        field.alias or name: Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        for name, field in section.model_fields.items()
    }


def bounds_of(annotation: Any) -> dict[str, Any]:
    """Return the bounds of a number by the names ge, gt, le and lt, as far as it has them."""
    found: dict[str, Any] = {}
    for part in get_args(annotation):
        if isinstance(part, FieldInfo):
            found |= bounds_of(Annotated[Any, *part.metadata]) if part.metadata else {}
        found |= {name: getattr(part, name) for name in ("ge", "gt", "le", "lt") if hasattr(part, name)}
        found |= bounds_of(part) if get_args(part) else {}
    return found


def inside(kind: Any, key: Any) -> Any:
    """Return the annotation of what stands at a key of a value of this type; None where nothing can."""
    if is_section(kind):
        return keys_of(kind).get(str(key))
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return arguments[1]
    if get_origin(kind) is list:
        return arguments[0]
    if get_origin(kind) is tuple:
        return arguments[min(int(key), len(arguments) - 1)] if str(key).isdigit() else None
    return Any if kind in (Any, dict) else None


@dataclass(frozen=True)
class Walked:
    """Where a path of the schema's library leads.

    Attributes
    ----------
    path
        The keys as a user writes them: names of the types that were tried are left out.
    annotation
        What stands there.
    tried
        The part of `path` that holds one of several types, and the name of the type that was tried; None for both
        where there is one type alone.
    """

    path: tuple[Any, ...]
    annotation: Any
    tried: tuple[tuple[Any, ...], str] | None = None


def walk(root: type[BaseModel], location: tuple[Any, ...]) -> Walked:
    """Follow the location of a fault through the schema."""
    annotation: Any = root
    path: list[Any] = []
    tried = None
    for part in location:
        kinds = members(annotation)
        if len(kinds) > 1:
            tried = tried or (tuple(path), str(part))
            annotation = next((kind for kind in kinds if is_called(kind, part)), kinds[0])
            continue
        if part == "[key]":
            continue
        path.append(part)
        annotation = inside(kinds[0], part) if kinds else None
    return Walked(tuple(path), annotation, tried)


def is_called(kind: Any, name: Any) -> bool:
    """Return whether pydantic gives a type of a union this name in the location of a fault."""
    origin = get_origin(kind) or kind
    own = getattr(origin, "__name__", str(origin))
    return str(name) == own or (not is_section(kind) and str(name).startswith((own, f"constrained-{own}", "function")))


def places(root: type[BaseModel], key: str) -> Iterator[tuple[str, ...]]:
    """Yield the sections that have this key; `<id>` stands for a key that users choose."""
    yield from _places(root, key, ())


def _places(section: type[BaseModel], key: str, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    known = keys_of(section)
    if key in known:
        yield path
    for name, annotation in known.items():
        for kind in members(annotation):
            if is_section(kind):
                yield from _places(kind, key, (*path, name))
            elif get_origin(kind) is dict and len(inner := members(get_args(kind)[1])) == 1 and is_section(inner[0]):
                yield from _places(inner[0], key, (*path, name, "<id>"))

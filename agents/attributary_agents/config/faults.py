"""Says in words what is wrong with a configuration: the key's path, what was expected, what was given, the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import NoneType
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from attributary_explainers.wording import closest, did_you_mean

from .keys import bounds_of, is_called, is_section, keys_of, members, places, walk
from .secrets import holds_secret

_LONGEST = 120  # characters of a value that are shown
_SHOWN_KEYS = 2  # of a section whose form is named among others


def told(root: type[BaseModel], faults: Iterable[Mapping[str, Any]], model_ids: list[str]) -> str:
    """Say each fault that the schema's library has found, in one line.

    Parameters
    ----------
    root
        The schema of the whole configuration.
    model_ids
        The ids of the models that are configured, to say where a key belongs.
    """
    lines: list[tuple[tuple[Any, ...], str]] = []
    unions: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for fault in faults:
        walked = walk(root, fault["loc"])
        if walked.tried is None:
            lines.append((walked.path, _line(root, walked.path, walked.annotation, fault, model_ids)))
        else:
            unions.setdefault(walked.tried[0], []).append(fault)
    for path, found in unions.items():
        lines += [(path, line) for line in _of_a_union(root, path, found, model_ids)]
    return "; ".join(_once_for_all_models(lines))


def _once_for_all_models(lines: Iterable[tuple[tuple[Any, ...], str]]) -> list[str]:
    """Return the lines; what several models have alike is said of the first of them, with how many more there are."""
    models: dict[str, dict[str, None]] = {}
    for path, line in lines:
        model = _dotted(path[:2]) if path[:1] == ("models",) and len(path) > 1 else ""
        models.setdefault(line.replace(model, "models.<id>") if model else line, {})[line] = None
    said = []
    for alike in models.values():
        first, n_more = next(iter(alike)), len(alike) - 1
        said.append(f"{first} (and {n_more} more model{'' if n_more == 1 else 's'} alike)" if n_more else first)
    return said


def _of_a_union(
    root: type[BaseModel], path: tuple[Any, ...], faults: list[Mapping[str, Any]], model_ids: list[str]
) -> list[str]:
    """Say the faults of the shape that is meant; where none is, say which shapes are possible."""
    walked = [(walk(root, fault["loc"]), fault) for fault in faults]
    wholes = [fault["input"] for found, fault in walked if found.path == path]
    kinds = members(walk(root, path).annotation)
    meant = _meant(kinds, wholes)
    if meant is not None:
        chosen = [
            _line(root, found.path, found.annotation, fault, model_ids)
            for found, fault in walked
            if is_called(meant, fault["loc"][len(path)])
        ]
        if chosen:
            return chosen
    shapes = " or ".join(_shape(kind) for kind in kinds)
    given = wholes[0] if wholes else None
    return [f"{_dotted(path)}: expected {shapes}{_got(root, path, given)}{_shortened(kinds, given)}"]


def _meant(kinds: list[Any], wholes: list[Any]) -> Any:
    """Return the one of several types that the given value was meant for; None where that is open."""
    if not wholes:
        return None
    given = wholes[0]
    if isinstance(given, list):
        return next((kind for kind in kinds if get_origin(kind) in (list, tuple)), None)
    if isinstance(given, dict):
        sections = [kind for kind in kinds if is_section(kind)]
        return next((kind for kind in sections if _needed(kind) & given.keys()), None)
    return None


def _needed(section: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in section.model_fields.items() if field.is_required()}


def _shape(kind: Any) -> str:
    """Return in words what a value of this type looks like."""
    if is_section(kind):
        return "{" + ", ".join(f"{key}: …" for key in list(keys_of(kind))[:_SHOWN_KEYS]) + "}"
    if get_origin(kind) is list:
        return f"a list of {_plural(get_args(kind)[0])}"
    return {str: "text", int: "an integer", float: "a number", bool: "true or false"}.get(kind, "a mapping")


def _plural(kind: Any) -> str:
    return " or ".join(_shape(one) for one in members(kind)).replace("text", "texts")


def _shortened(kinds: list[Any], given: Any) -> str:
    """Say how to write what stands there as text although a section is needed."""
    known = {key for kind in kinds if is_section(kind) for key in keys_of(kind)}
    key = "factory" if ":" in str(given) else "class"
    return f": write {{{key}: {given}}}" if isinstance(given, str) and key in known else ""


def _line(
    root: type[BaseModel], path: tuple[Any, ...], annotation: Any, fault: Mapping[str, Any], model_ids: list[str]
) -> str:
    kind, given, name = fault["type"], fault["input"], _dotted(path)
    if kind == "extra_forbidden":
        return _unknown(root, path, model_ids)
    if kind == "missing":
        return f"{name} is missing{_missing(root, path)}"
    if kind in ("value_error", "assertion_error"):
        said, _, question = fault["msg"].removeprefix("Value error, ").partition(": did you mean")
        if not path:  # what sections say of each other: it names them itself
            return str(fault["msg"]).removeprefix("Value error, ")
        is_told = ", got " in said or (isinstance(given, str) and said.startswith(repr(given)))
        got = "" if is_told else _got(root, path, given)
        return f"{name}: {said}{got}{f': did you mean{question}' if question else ''}"
    expected = _expected(annotation, fault)
    remedy = _remedy(fault) if not holds_secret(root, path) else ""
    return f"{name}: expected {expected}{_got(root, path, given)}{remedy}"


def _missing(root: type[BaseModel], path: tuple[Any, ...]) -> str:
    if path == ("models",):
        return ": name a model, such as models: {credit: {model: {class: river.forest.ARFClassifier}}}"
    return ""


_WORDS = {
    "finite": "a finite number",
    "bool": "true or false",
    "string": "text",
    "list": "a list, such as [a, b]",
    "tuple": "a list, such as [a, b]",
    "dict": "a mapping, which is a key and a value in each line below",
    "path": "the path of a file or folder",
}

_PATTERNS = {
    r"^[A-Za-z0-9._-]{1,200}$": "1 to 200 letters, digits, dots, underscores or hyphens",
    r"^([A-Za-z_][\w.]*(:[A-Za-z_]\w*)?|https?://[^\s@?#\\%]+)$": "a package or module, such as river or "
    "mymodels.trees, a factory, such as mymodels:build, or an address, such as http://fraud/v2/models",
    r"^[^:\s]+:[^:\s]+$": "module:function, such as mymodels:build",
}


def _expected(annotation: Any, fault: Mapping[str, Any]) -> str:
    """Return in words what the schema's library expected."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "literal_error":
        return str(context["expected"])
    if kind.startswith(("greater", "less", "int_", "float_")):
        return f"{'an integer' if int in members(annotation) else 'a number'}{_range(bounds_of(annotation))}"
    if kind == "too_short":
        return f"a list with {context['min_length']} of them or more"
    if kind == "string_too_short":
        return "text that is not empty"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"text of the form {context['pattern']}")
    if kind == "model_type":
        keys = [key for one in members(annotation) if is_section(one) for key in keys_of(one)]
        return f"a mapping with keys such as {', '.join(keys[:3])}"
    return _WORDS.get(kind.split("_")[0], re.sub(r"^Input should (be )?", "", fault["msg"]))


def _range(bounds: Mapping[str, Any]) -> str:
    """Return in words which numbers are valid.

    Examples
    --------
    >>> f"a number{_range({'gt': 0, 'le': 1})}"
    'a number above 0 and at most 1'
    """
    if {"ge", "le"} <= bounds.keys():
        return f" from {bounds['ge']} to {bounds['le']}"
    words = {"ge": "of at least", "gt": "above", "le": "at most", "lt": "below"}
    said = [f"{word} {bounds[name]}" for name, word in words.items() if name in bounds]
    return f" {' and '.join(said)}" if said else ""


def _remedy(fault: Mapping[str, Any]) -> str:
    """Return what to write, where what is wrong is known well enough."""
    kind, given = fault["type"], fault["input"]
    if kind == "literal_error":
        return did_you_mean(given, re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
    if kind == "string_type" and isinstance(given, int | float):
        return f": write {str(given).lower() if isinstance(given, bool) else given} in quotes"
    if kind.startswith(("float_", "int_")) and isinstance(given, str) and re.fullmatch(r"-?\d+,\d+", given):
        return f": write {given.replace(',', '.')}"
    if kind in ("dict_type", "model_type") and isinstance(given, list) and all(isinstance(one, str) for one in given):
        return f": write {{{', '.join(f'{one}: …' for one in given)}}}"
    if kind == "list_type" and isinstance(given, str):
        return f": write [{given}]"
    return ""


def _unknown(root: type[BaseModel], path: tuple[Any, ...], model_ids: list[str]) -> str:
    *parents, key = path
    if holds_secret(root, tuple(parents)) and not re.fullmatch(r"[\w.-]+", str(key)):
        # `password:x` without a blank is a key, in a section with secrets.
        return f"unknown key in {_dotted(parents) or 'the configuration'} (not shown)"
    return f"unknown key {_dotted(path)!r}{_meant_key(root, tuple(parents), str(key), model_ids)}"


def _meant_key(root: type[BaseModel], section: tuple[Any, ...], key: str, model_ids: list[str]) -> str:
    """Say which key of the section may be meant, or in which section the key belongs."""
    known = [name for kind in members(walk(root, section).annotation) if is_section(kind) for name in keys_of(kind)]
    if key in known:  # of another shape that may stand here
        return f": {' and '.join(_first_keys(root, section))} say the same in two ways, so give one of them"
    if near := did_you_mean(key, known):
        return near
    found = [place for place in places(root, key) if place[:1] != ("defaults",) or section[:1] == ("defaults",)]
    if not found:
        return f": {_dotted(section)} has {', '.join(known)}" if known and section else ""
    nearest = min(found, key=lambda place: (-_in_common(place, section), len(place)))
    filled = [_filled(nearest, i, section, model_ids) for i in range(len(nearest))]
    return f": {key} belongs {f'below {_dotted(filled)}' if filled else 'at the top, beside models'}"


def _first_keys(root: type[BaseModel], section: tuple[Any, ...]) -> list[str]:
    """Return the key that each shape begins with."""
    return [next(iter(keys_of(kind))) for kind in members(walk(root, section).annotation) if is_section(kind)]


def _in_common(place: tuple[str, ...], section: tuple[Any, ...]) -> int:
    n = 0
    for one, other in zip(place, section, strict=False):
        if one not in ("<id>", other):
            break
        n += 1
    return n


def _filled(place: tuple[str, ...], i: int, section: tuple[Any, ...], model_ids: list[str]) -> str:
    if place[i] != "<id>":
        return place[i]
    if _in_common(place, section) > i:
        return str(section[i])
    return model_ids[0] if place[:i] == ("models",) and len(model_ids) == 1 else "<id>"


def variable_meant(root: type[BaseModel], prefix: str, variable: str) -> str:
    """Return a question that names the environment variable which may be meant; empty where none is."""
    name = variable.removeprefix(prefix).lower()
    first, _, rest = name.partition("__")
    if near := closest(first, root.model_fields):
        return f": did you mean {prefix}{near.upper()}{'__' + rest.upper() if rest else ''}?"
    for section in places(root, name):
        if section and "<id>" not in section:
            return f": did you mean {prefix}{'__'.join((*section, name)).upper()}?"
    return ""


def _dotted(path: Iterable[Any]) -> str:
    return ".".join(str(part) for part in path)


_KINDS = {str: "text", list: "a list", int: "a number", float: "a number", bool: "true or false", NoneType: "nothing"}


def _got(root: type[BaseModel], path: tuple[Any, ...], given: Any) -> str:
    if isinstance(given, dict):
        return ""
    if holds_secret(root, path):
        return f", got {_KINDS.get(type(given), 'another value')} (not shown)"
    if given is None:
        return ", got nothing (null)"
    shown = repr(given)
    return f", got {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + ' …'}"

"""Messages for faults of a configuration: a line each, with the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attributary_explainers.wording import did_you_mean

from .schema import Form, at, forms, holds_secret, inside, keys_of, sections

Path = tuple[Any, ...]
Fault = Mapping[str, Any]

_LONGEST = 120  # characters of a value that are shown
_SHOWN_KEYS = 3  # of a section

_YAML = {
    "a valid dictionary": "a mapping",
    "a valid tuple": "a list",
    "a valid list": "a list",
    "a valid string": "text",
    "a valid boolean": "true or false",
    "is not a valid path for <class 'pathlib.Path'>": "should be the path of a file or folder",
}
"""Pydantic's words for what the file's language calls otherwise."""


def lines_of(faults: Iterable[Fault]) -> str:
    """Return a text with the place, the allowed values and a remedy per fault."""
    alike: dict[str, list[str]] = {}
    for path, found in _by_place(faults).items():
        model = _dotted(path[:2]) if path[:1] == ("models",) else ""
        for line in dict.fromkeys(_lines(path, found)):
            alike.setdefault(line.replace(model, "models.<id>") if model else line, []).append(line)
    more = {first: len(others) for first, *others in alike.values()}
    return "; ".join(
        f"{line} (and {n} more model{'' if n == 1 else 's'} alike)" if n else line for line, n in more.items()
    )


def _by_place(faults: Iterable[Fault]) -> dict[Path, list[tuple[str | None, Path, Fault]]]:
    """Return the faults by place; a value of several forms is a single place.

    Each has the form that pydantic tried, where there are several, and the path as a user writes it.
    """
    places: dict[Path, list[tuple[str | None, Path, Fault]]] = {}
    for fault in faults:
        found, tried = forms(), None
        path: Path = ()
        whole: Path = ()
        for part in fault["loc"]:
            possible = [form for form in found if form.get("type") != "null"]
            if len(possible) > 1:
                tried, whole = (tried, whole) if tried else (str(part), path)
                found = [form for form in possible if _is_called(form, str(part))] or possible[:1]
            elif part != "[key]":
                path = (*path, part)
                found = [one for form in possible for one in inside(form, part)]
        places.setdefault(whole if tried else path, []).append((tried, path, fault))
    return places


def _is_called(form: Form, tried: str) -> bool:
    kind = {"array": ("list", "constrained-list", "tuple"), "object": ("dict",)}.get(form.get("type", ""), ())
    return form.get("title") == tried or ("properties" not in form and bool(kind) and tried.startswith(kind))


def _lines(place: Path, faults: list[tuple[str | None, Path, Fault]]) -> list[str]:
    """Return the messages of a place.

    Where a value may have several forms, they are of the form that is meant, or they list the forms.
    """
    others = {tried for tried, path, fault in faults if tried and _is_of_form(place, path, fault)}
    meant = next((tried for tried, _, _ in faults if tried not in others), None)
    if faults[0][0] is None or meant is not None:
        return [_line(path, fault) for tried, path, fault in faults if tried == meant]
    given = next((fault["input"] for _, path, fault in faults if path == place), None)
    shapes = " or ".join(_shape(form) for form in at(place) if form.get("type") != "null")
    remedy = ""
    if isinstance(given, str) and "class" in keys_of(at(place)):
        remedy = f": write {{{'factory' if ':' in given else 'class'}: {given}}}"
    return [f"{_dotted(place)} should be {shapes}{_got(place, given)}{remedy}"]


def _is_of_form(place: Path, path: Path, fault: Fault) -> bool:
    kind = fault["type"]
    is_other = kind.endswith("_type") or (kind == "literal_error" and not isinstance(fault["input"], str))
    return (kind == "missing" and path[:-1] == place) or (path == place and is_other)


def _shape(form: Form) -> str:
    """Describe a value of this form in words."""
    if keys := keys_of([form]):
        return "{" + ", ".join(f"{key}: …" for key in keys[:2]) + "}"
    if form.get("type") == "array":
        return f"a list of {' or '.join(_shape(one) for one in inside(form, 0))}"
    if "enum" in form:
        return " or ".join(form["enum"])
    words = {"string": "text", "integer": "an integer", "number": "a number", "boolean": "true or false"}
    return words.get(form.get("type", ""), "a mapping")


def _line(path: Path, fault: Fault) -> str:
    kind, given, name = fault["type"], fault["input"], _dotted(path)
    if kind == "extra_forbidden":
        return _unknown(path)
    if kind == "missing":
        example = ": name a model, such as models: {credit: {model: {class: river.forest.ARFClassifier}}}"
        return f"{name} is missing{example if path == ('models',) else ''}"
    said = fault["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        is_said = ", got " in said or (isinstance(given, str) and repr(given) in said)
        return f"{name}: {said}{'' if is_said else _got(path, given)}" if path else said
    if kind == "model_type":
        keys = ", ".join(keys_of(at(path))[:_SHOWN_KEYS])
        said = f"Input should be a mapping{f' with keys such as {keys}' if keys else ''}"
    said = re.sub(", (unable to|got a number) .*", "", said)
    for words, ours in _YAML.items():
        said = said.replace(words, ours)
    said = f" {said.removeprefix('Input ')}" if said.startswith("Input ") else f": {said[0].lower()}{said[1:]}"
    return f"{name}{said}{_got(path, given)}{'' if holds_secret(path) else _remedy(path, fault)}"


def _remedy(path: Path, fault: Fault) -> str:
    """Return a remedy, or an empty text if none is clear."""
    kind, given = fault["type"], fault["input"]
    if kind == "literal_error":
        return did_you_mean(given, re.findall(r"'([^']*)'", fault["ctx"]["expected"]))
    if kind == "string_pattern_mismatch":
        described = [one["description"] for place in (path, path[:-1]) for one in at(place) if "description" in one]
        return f" ({described[0].split('. ')[0].rstrip('.')})"
    if kind == "string_type" and isinstance(given, int | float):
        return f": write {str(given).lower() if isinstance(given, bool) else given} in quotes"
    if kind.startswith(("float_", "int_")) and isinstance(given, str) and re.fullmatch(r"-?\d+,\d+", given):
        return f": write {given.replace(',', '.')}"
    if kind == "list_type" and isinstance(given, str):
        return f": write [{given}]"
    if kind in ("model_type", "dict_type") and isinstance(given, list) and all(isinstance(one, str) for one in given):
        return f": write {{{', '.join(f'{one}: …' for one in given)}}}"
    return ""


def _unknown(path: Path) -> str:
    *parents, key = path
    section, key = tuple(parents), str(key)
    if holds_secret(section) and not re.fullmatch(r"[\w.-]+", key):
        # `password:x` without a blank is a key, in a section with secrets.
        return f"unknown key in {_dotted(section) or 'the configuration'} (not shown)"
    return f"unknown key {_dotted(path)!r}{_meant_key(section, key)}"


def _meant_key(section: Path, key: str) -> str:
    """Suggest a key of the section, or the section in which the key belongs."""
    found = at(section)
    known = keys_of(found)
    if key in known:  # of another form that may stand here
        return f": give one of {', '.join(keys_of([form])[0] for form in found if keys_of([form]))} alone"
    if near := did_you_mean(key, known):
        return near
    places = [place for place, keys in sections() if key in keys]
    places = [place for place in places if "defaults" not in place[:1] or "defaults" in section[:1]]
    if not places:
        return f": {_dotted(section)} has {', '.join(known)}" if known and section else ""
    nearest = max(places, key=lambda place: (_in_common(place, section), -len(place)))
    n = _in_common(nearest, section)
    where = _dotted((*section[:n], *nearest[n:]))
    return f": {key} belongs {f'below {where}' if where else 'at the top, beside models'}"


def _in_common(place: tuple[str, ...], section: Path) -> int:
    alike = [one in ("<id>", other) for one, other in zip(place, section, strict=False)]
    return (*alike, False).index(False)


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))


def _got(path: Path, given: Any) -> str:
    if isinstance(given, dict):
        return ""
    if holds_secret(path):
        return ", got another value (not shown)"
    shown = "nothing (null)" if given is None else repr(given)
    return f", got {shown if len(shown) <= _LONGEST else shown[:_LONGEST] + ' …'}"

"""Features `x` of observations, in each form of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attributary_topics import InvalidRecordError

from ..expressions import RecordView, is_expression_of_names, parse
from .values import LEAST, MOST, as_plain, cast, gave, scalar

Features = Callable[[RecordView, dict[str, Any] | None], dict[str, Any]]
"""Takes the record and what its format says of x; returns the features and raises InvalidRecordError."""

_PLAIN = frozenset((str, bool, type(None)))


def features(
    x: str | dict[str, Any] | None, casts: Mapping[str, str], roles: set[tuple[str, ...]], field: str
) -> Features:
    """Return the function that makes the features of a record.

    Parameters
    ----------
    x
        As the configuration says.
    casts
        Feature to one of `values.CASTS`.
    roles
        Paths of what has another role, which is therefore no feature where fields are taken as they come.
    field
        The key of the configuration, for errors: `sources.rentals.x`.
    """
    if x is None or (isinstance(x, dict) and isinstance(x.get("all_but"), list)):
        out = {path[0] for path in roles if len(path) == 1} | set(x["all_but"] if x else ())
        made = _all_but(frozenset(out), field)
    elif isinstance(x, str):
        made = _object(x, roles, field)
    elif isinstance(x.get("only"), list):
        made = _only(x["only"], field)
    else:
        made = _by_name(x, field)
    return _whole(made, casts, field)


def _whole(made: Features, casts: Mapping[str, str], field: str) -> Features:
    def whole(view: RecordView, given: dict[str, Any] | None) -> dict[str, Any]:
        found = made(view, given)
        for name, kind in casts.items():
            if name in found:
                found[name] = cast(found[name], kind, f"{field}.{name}", name)
        if not found:
            message = f"{field}: expected at least one feature, the record has no number, text or boolean left for it"
            raise InvalidRecordError("missing_feature", field, "at least one feature", found, message)
        return found

    return whole


def _all_but(out: frozenset[str], field: str) -> Features:
    def all_but(view: RecordView, given: dict[str, Any] | None) -> dict[str, Any]:
        found = {}
        for name, value in (view.value if given is None else given).items():
            if name in out:
                continue
            kind = type(value)
            if kind in _PLAIN or (kind is float and value - value == 0.0) or (kind is int and LEAST <= value <= MOST):
                found[name] = value
            elif kind in (float, int) or type(value := as_plain(value)) in (float, int):
                found[name] = scalar(value, f"{field}.{name}", name)
        return found

    return all_but


def _object(text: str, roles: set[tuple[str, ...]], field: str) -> Features:
    read = parse(text)
    out: set[str] = set()
    if is_expression_of_names(text):  # what has another role in the same object is no feature either
        at = tuple(text.split("."))
        out = {path[-1] for path in roles if path[:-1] == at}

    def of_object(view: RecordView, _given: dict[str, Any] | None) -> dict[str, Any]:
        try:
            found = read(view)
        except ValueError as error:
            raise failed(field, error) from None
        if type(found) is not dict:
            raise _no_object(field, text, found)
        return {name: scalar(found[name], f"{field}.{name}", name) for name in found if name not in out}

    return of_object


def failed(field: str, error: ValueError) -> InvalidRecordError:
    """Return the error of a record on which an expression fails."""
    return InvalidRecordError("wrong_type", field, "values that the expression takes", None, f"{field}: {error}")


def _no_object(field: str, text: str, found: Any) -> InvalidRecordError:
    if found is None:
        return InvalidRecordError(
            "missing_feature", field, "an object", found, f"{field}: expected an object, {text!r} gave nothing"
        )
    kinds = {bool: "a boolean", int: "a number", float: "a number", str: "text"}
    is_value = type(found) in kinds
    write = f"; write x: {{{text.split('.')[-1]}: {text}}}" if is_value and is_expression_of_names(text) else ""
    message = f"{field}: {text!r} gives {kinds.get(type(found)) or gave(found)}: x needs an object{write}"
    return InvalidRecordError("wrong_type", field, "an object", found, message)


def _only(names: list[str], field: str) -> Features:
    def only(view: RecordView, given: dict[str, Any] | None) -> dict[str, Any]:
        value = view.value if given is None else given
        return {name: scalar(value.get(name), f"{field}.{name}", name) for name in names}

    return only


def _by_name(x: dict[str, str], field: str) -> Features:
    reads = [(name, text, parse(text), f"{field}.{name}") for name, text in x.items()]

    def by_name(view: RecordView, _given: dict[str, Any] | None) -> dict[str, Any]:
        found = {}
        for name, text, read, at in reads:
            try:
                value = read(view)
            except ValueError as error:
                raise failed(at, error) from None
            found[name] = value if type(value) in _PLAIN else scalar(value, at, text)
        return found

    return by_name

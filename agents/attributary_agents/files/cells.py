"""Cells of separated files: separator, header row, kinds of columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

SEPARATORS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
_LARGEST_INTEGER = 2**63
_BOOLEANS = {"true": True, "false": False}


def separator_of(header: str, *, is_tsv: bool = False) -> str:
    r"""Return the separator of a header row.

    It is the comma where there is one, else the sign that the header has most of. Signs within quotes are part of a
    name. A file that is called .tsv has tabs wherever its header has one.

    Examples
    --------
    >>> separator_of("age;rate;y"), separator_of('"age, years"|y'), separator_of("y")
    (';', '|', ',')
    >>> separator_of("age, years\trate\ty", is_tsv=True)
    '\t'
    """
    bare = _QUOTED.sub("", header)
    if is_tsv and "\t" in bare:
        return "\t"
    return "," if "," in bare else max(SEPARATORS, key=bare.count)


def looks_like_data(header: Sequence[str]) -> bool:
    """Return whether the first row of a file has values, not names.

    That is where each cell is a number, or each but one and some of them has a fraction (a row of numbers and its
    label). Numbers from 0 on are names: pandas gives them to columns that have none.

    Examples
    --------
    >>> looks_like_data(["5.1", "3.5", "setosa"]), looks_like_data(["country", "1990", "1991"])
    (True, False)
    >>> looks_like_data(["1", "0"]), looks_like_data(["0", "1", "2"])
    (True, False)
    """
    found = [number for text in header if (number := as_number(text)) is not None]
    if len(found) < len(header):
        return len(found) == len(header) - 1 > 1 and any(isinstance(number, float) for number in found)
    return len(found) < 3 or found != list(range(len(found)))


def kind_of(column: Sequence[str]) -> str:
    """Return the kind of a column: `number`, `boolean` or `text`.

    Booleans are True and False, however written.

    Examples
    --------
    >>> kind_of(["1", "2.5"]), kind_of(["True", "FALSE"]), kind_of(["1", "yes"])
    ('number', 'boolean', 'text')
    """
    if all(as_number(text) is not None for text in column):
        return "number"
    return "boolean" if all(text.lower() in _BOOLEANS for text in column) else "text"


def as_cell(text: str, kind: str) -> Any:
    """Return the value of a cell in a column of a kind; None if empty.

    A cell that does not fit the kind stays text.
    """
    if not text:
        return None
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), text)
    number = as_number(text) if kind == "number" else None
    return text if number is None else number


def as_number(text: str) -> int | float | None:
    """Return the number in a cell, or None for text.

    NaN and infinity are numbers here; they are refused later, by name.
    """
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if text.lstrip("+-").isdecimal() and abs(number) < _LARGEST_INTEGER:
        return int(text)
    return number

"""Texts with expressions between braces, such as `store-{station}`.

A model id that depends on the record is such a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .expressions import Expression, parse
from .own import RecordView


@dataclass(frozen=True)
class Text:
    """A text with expressions in it.

    Attributes
    ----------
    parts
        What it is made of, in order: plain text, and expressions with their own text.
    """

    source: str
    parts: tuple[str | tuple[str, Expression], ...]

    @property
    def is_plain(self) -> bool:
        """Whether there is no expression in it."""
        return all(isinstance(part, str) for part in self.parts)

    @property
    def pattern(self) -> str:
        """The glob that all that it can become matches: `store-*`."""
        return "".join(part if isinstance(part, str) else "*" for part in self.parts)

    def of(self, view: RecordView) -> str:
        """Return the text for a record.

        Raises
        ------
        ValueError
            An expression gives neither text nor an integer nor a boolean, or an empty text.
        """
        return "".join(part if isinstance(part, str) else _shown(part[0], part[1](view)) for part in self.parts)


def _shown(text: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int)) and value != "":
        return str(value)
    got = "nothing" if value is None else "an empty text" if value == "" else f"{_kind(value)}"
    raise ValueError(f"expected text or an integer, {text!r} gave {got}")


def _kind(value: Any) -> str:
    return {float: "a number with a fraction", dict: "an object", list: "an array"}.get(type(value), "another type")


def parse_text(text: str) -> Text:
    """Compile a text with expressions between braces.

    Braces within quotes, and further braces in an expression, belong to the expression.

    Raises
    ------
    ValueError
        A brace is not closed, or what is between braces is no expression.
    """
    parts: list[str | tuple[str, Expression]] = []
    plain, at = "", 0
    while at < len(text):
        if text[at] == "}":
            raise ValueError(f"{text!r}: a closing brace at character {at + 1} without an opening one")
        if text[at] != "{":
            plain, at = plain + text[at], at + 1
            continue
        end = _closing(text, at)
        inner = text[at + 1 : end].strip()
        if not inner:
            raise ValueError(f"{text!r}: nothing between the braces at character {at + 1}")
        if plain:
            parts.append(plain)
        parts.append((inner, parse(inner)))
        plain, at = "", end + 1
    if plain or not parts:
        parts.append(plain)
    return Text(text, tuple(parts))


def _closing(text: str, opening: int) -> int:
    depth, quote, at = 0, "", opening
    while at < len(text):
        character = text[at]
        if quote:
            if character == "\\":
                at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"`":
            quote = character
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise ValueError(f"{text!r}: the brace at character {opening + 1} is not closed")

"""Compiler of JMESPath expressions, with a short cut for dotted names.

Most expressions are names joined by dots.

`$key`, `$headers.NAME`, `$timestamp`, `$topic`, `$partition` and `$offset` are the record's own. JMESPath refuses a
`$` in a name that is not quoted, so that these names are free; for the library they are put into quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError, LexerError, ParseError

from .own import OWN_NAMES, RecordView

Expression = Callable[[RecordView], Any]
"""Takes what a record holds and returns what the expression finds there; None where it finds nothing.

It raises ValueError where a function in the expression is given a value that it does not take.
"""

_NAME = re.compile(r"\$?[A-Za-z_][A-Za-z0-9_]*")
_OWN_OR_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?<!\w)\$[A-Za-z_]\w*""")


def is_expression_of_names(text: str) -> bool:
    """Return whether an expression consists of names joined by dots.

    Such names are looked up without the library.
    """
    return all(_NAME.fullmatch(part) for part in text.split(".")) and "$" not in text.partition(".")[2]


@lru_cache(maxsize=10_000)
def parse(text: str) -> Expression:
    """Compile an expression.

    Raises
    ------
    ValueError
        It is no JMESPath: what is wrong and where, and how to write what was probably meant.
    """
    if is_expression_of_names(text):
        return _path(text)
    return _query(text)


def _path(text: str) -> Expression:
    first, *rest = text.split(".")
    if first.startswith("$"):
        _check_own(text, first)
        return lambda view: _walk(view.own(first), rest)
    if not rest:
        return lambda view: value.get(first) if isinstance(value := view.value, dict) else None
    names = [first, *rest]
    return lambda view: _walk(view.value, names)


def _walk(value: Any, names: list[str]) -> Any:
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def rewrite(text: str) -> tuple[str, set[str]]:
    """Put the record's own names in an expression into quotes.

    Returns the expression as the library takes it, and the record's own names that it reads.

    Raises
    ------
    ValueError
        A record has nothing of its own by such a name.
    """
    used: set[str] = set()

    def quoted(match: re.Match[str]) -> str:
        found = match.group()
        if not found.startswith("$"):
            return found
        _check_own(text, found)
        used.add(found)
        return f'"{found}"'

    return _OWN_OR_QUOTED.sub(quoted, text), used


def _query(text: str) -> Expression:
    rewritten, used = rewrite(text)
    try:
        query = jmespath.compile(rewritten)
    except JMESPathError as error:
        raise ValueError(_refusal(text, rewritten, error)) from None

    def ask(view: RecordView) -> Any:
        value = view.value
        if used:
            own = {name: view.own(name) for name in used}
            value = {**value, **own} if isinstance(value, dict) else own
        try:
            return query.search(value)
        except Exception as error:  # noqa: BLE001 - some of its functions raise Python's own errors, such as floor(NaN)
            raise ValueError(f"{text!r}: {_first_line(error)}") from None

    return ask


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _check_own(text: str, name: str) -> None:
    if name not in OWN_NAMES:
        raise ValueError(f"{text!r}: a record has no {name}; it has {', '.join(OWN_NAMES)}")


def _refusal(text: str, rewritten: str, error: JMESPathError) -> str:
    if re.search(r"@[A-Za-z_]", text):
        name = re.search(r"@([A-Za-z_]\w*)", text)
        assert name is not None
        own = f"${name.group(1)}"
        if own in OWN_NAMES:
            return f"{text!r}: the record's {own[1:]} is {own}"
    where = ""
    if isinstance(error, (LexerError, ParseError)):
        position = getattr(error, "lex_position", 0)
        token = getattr(error, "token_value", None)
        said = f"unexpected {token!r} at character {position + 1}" if token else f"it ends too early ({len(text)})"
        where = f" ({said})" if rewritten == text else f" (unexpected {token!r})" if token else ""
    elif str(error):
        where = f" ({str(error).splitlines()[0]})"
    return f"{text!r} is no JMESPath{where}{_hint(text)}"


def _hint(text: str) -> str:
    bare = re.sub(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`""", "", text)
    if re.search(r"(?<![=!<>])=(?!=)", bare):
        return ": equality is =="
    if re.search(r"\b(and|or|not)\b", bare):
        return ": and, or, not are written &&, ||, !"
    if re.search(r"\w-\w", bare):
        return """: a name with a hyphen is quoted, as in "zip-code\""""
    if re.search(r"\w\$\w", bare):
        return """: a name with $ in it is quoted, as in "a$b\""""
    if re.search(r"(==|!=|<=?|>=?)\s*-?\d", bare):
        return ": a number is written between backticks, as in age > `18`"
    return ""

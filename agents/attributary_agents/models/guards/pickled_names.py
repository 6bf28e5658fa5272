"""Lists what a pickle names, without loading it: for messages that name all at once."""

from __future__ import annotations

import contextlib
import pickletools
from collections.abc import Iterable
from types import BuiltinFunctionType, ModuleType
from typing import Any

Name = tuple[str, str]
"""Module and qualified name of a class or function."""

_STRINGS = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})


def names_in(data: bytes) -> list[Name]:
    """Return what a pickle names, in its order, each once; as far as it can be read.

    It follows the strings alone: of bytes that no pickler has written, names may be missing or be wrong.
    """
    names: dict[Name, None] = {}
    memo: dict[int, str] = {}
    strings, n_memoized, is_string = ["", ""], 0, False
    with contextlib.suppress(Exception):  # anybody may have written the bytes; what loads them says what is wrong
        argument: Any
        for opcode, argument, _ in pickletools.genops(data):
            kind = opcode.name
            if kind == "STACK_GLOBAL":
                names[strings[-2], strings[-1]] = None
            elif kind in ("GLOBAL", "INST"):
                module, _, name = argument.partition(" ")
                names[module, name] = None
            elif kind == "MEMOIZE":
                if is_string:
                    memo[n_memoized] = strings[-1]
                n_memoized += 1
                continue
            elif kind in _PUTS:
                if is_string:
                    memo[argument] = strings[-1]
                continue
            is_string = kind in _STRINGS or (kind in _GETS and argument in memo)
            if is_string:
                strings = [strings[-1], argument if kind in _STRINGS else memo[argument]]
    return list(names)


def names_of(found: Iterable[Any]) -> list[Name]:
    """Return module and qualified name of classes and functions, without methods of objects, which have none."""
    names = []
    for one in found:
        if isinstance(one, BuiltinFunctionType) and not isinstance(one.__self__, ModuleType | None):
            continue
        module, name = getattr(one, "__module__", None), getattr(one, "__qualname__", None)
        if isinstance(module, str) and isinstance(name, str):
            names.append((module, name))
    return names

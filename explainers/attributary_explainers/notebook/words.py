"""Single-line texts of objects, as `repr` shows them."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from types import MethodType
from typing import Any

LONGEST = 40
"""Letters of a value that is shown in full; a longer one is shortened."""
FEW = 6
"""Objects of a mapping that are shown by their classes."""


def call(name: str, given: Mapping[str, Any], without_name: Collection[str]) -> str:
    """Return a call as text, with some arguments shown without names.

    Examples
    --------
    >>> call("IncrementalPFI", {"model": len, "alpha": 0.01}, {"model"})
    'IncrementalPFI(len, alpha=0.01)'
    """
    said = [shortened(value) if key in without_name else f"{key}={shortened(value)}" for key, value in given.items()]
    return f"{name}({', '.join(said)})"


def is_default(value: Any, declared: inspect.Parameter | None) -> bool:
    """Return whether a value is the default of its parameter."""
    if declared is None or declared.default is inspect.Parameter.empty:
        return False
    try:
        return value is declared.default or bool(type(value) is type(declared.default) and value == declared.default)
    except Exception:  # noqa: BLE001 - an array, or whatever else a user's parameter is
        return False


def shortened(value: Any) -> str:
    """Return a value in a short line, like `ARFClassifier(...)`.

    Examples
    --------
    >>> shortened(dict.fromkeys(range(100)))
    '{... 100 items}'
    >>> shortened("interventional"), shortened(len)
    ("'interventional'", 'len')
    """
    if isinstance(value, type) or inspect.isroutine(value):
        if isinstance(value, MethodType):
            return f"{type(value.__self__).__name__}.{value.__name__}"
        return str(getattr(value, "__name__", value))
    if isinstance(steps := getattr(value, "steps", None), (Mapping, list)):
        names = steps.values() if isinstance(steps, Mapping) else [step[1] for step in steps]
        return " | ".join(type(step).__name__ for step in names)
    text = repr(value)
    if hasattr(value, "learn_one") or hasattr(value, "fit"):  # River's ensembles say the list of their members
        name = type(value).__name__
        return text if text.startswith(name) and len(text) <= LONGEST and "\n" not in text else f"{name}(...)"
    if isinstance(value, Mapping) and len(value) <= FEW and all(hasattr(one, "_given") for one in value.values()):
        return "{" + ", ".join(f"{key!r}: {type(one).__name__}(...)" for key, one in value.items()) + "}"
    # An object of this package says itself in one line, and shortens what it holds.
    if "\n" not in text and (len(text) <= LONGEST or hasattr(value, "_given")) and " object at 0x" not in text:
        return text
    if isinstance(value, (Mapping, list, tuple, set, frozenset)):
        begin, end = ("{", "}") if isinstance(value, (Mapping, set, frozenset)) else ("[", "]")
        return f"{begin}... {len(value)} items{end}"
    if isinstance(value, str):
        return f"{text[: LONGEST - 4]}...'"
    return f"{type(value).__name__}(...)" if not text.startswith("<") or "(" in text else type(value).__name__

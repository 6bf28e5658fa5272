"""Inspects values (plain, finite, their size), and spoils them."""

from __future__ import annotations

import gc
import math
import pickle
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

_PLAIN = (str, int, float, bool, bytes, type(None))
_NOT_STATE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)


def strangers(data: Any, path: str) -> list[str]:
    """Return the paths of all values whose exact type is no builtin."""
    if type(data) is dict:
        return [s for k, v in data.items() for s in (*strangers(k, f"key of {path}"), *strangers(v, f"{path}[{k!r}]"))]
    if type(data) in (list, tuple, set, frozenset):
        return [s for i, v in enumerate(data) for s in strangers(v, f"{path}[{i}]")]
    return [] if type(data) in _PLAIN else [f"{path}: {type(data).__name__}"]


def numbers(result: Any) -> Iterator[float]:
    """Yield every float in a result, however deep."""
    if isinstance(result, Mapping):
        for value in result.values():
            yield from numbers(value)
    elif isinstance(result, (list, tuple, set, frozenset)):
        for value in result:
            yield from numbers(value)
    elif isinstance(result, (float, np.floating)):
        yield float(result)
    elif isinstance(result, np.ndarray) and result.dtype.kind == "f":
        yield from result.ravel().tolist()


def all_finite(result: Any) -> bool:
    """Return whether a result holds neither NaN nor infinity."""
    return all(map(math.isfinite, numbers(result)))


def spoil(data: Any) -> None:
    """Empty all dicts, lists and sets in `data`, the innermost first."""
    if isinstance(data, (dict, list, tuple)):
        for value in list(data.values()) if isinstance(data, dict) else list(data):
            spoil(value)
    if isinstance(data, (dict, list, set)):
        data.clear()


def size_of(data: Any) -> int:
    """Return the pickled size in bytes."""
    return len(pickle.dumps(data, pickle.HIGHEST_PROTOCOL))


def n_held(root: Any, model: Any) -> int:
    """Count the objects and elements held by `root`, except the model's."""
    seen: dict[int, Any] = {id(model): model}
    waiting, n = [root], 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, _NOT_STATE):
            continue
        seen[id(value)] = value
        n += 1
        if isinstance(value, np.ndarray):
            n += value.size
        elif isinstance(value, (str, bytes, bytearray)):
            n += len(value) // 8
        waiting.extend(gc.get_referents(value))
    return n

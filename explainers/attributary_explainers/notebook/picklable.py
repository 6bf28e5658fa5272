"""A clear refusal of objects that pickle cannot keep."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

_MOST = 200
"""Objects that are looked at: the parameters of a model come before what it has learnt."""


def check_picklable(of: Any) -> None:
    """Refuse a model or loss with a function pickle cannot find by name.

    Raises
    ------
    pickle.PicklingError
        Names the function and says what to do.
    """
    for what in ("model", "loss"):
        for function in _functions(getattr(of, what, None)):
            if "<" in function.__qualname__:
                raise pickle.PicklingError(
                    f"cannot pickle {type(of).__name__}: its {what} has the function {function.__qualname__}, which "
                    "pickle cannot find by its name. Define it with `def` at the top of a module, or as __call__ of a "
                    "class; or keep `snapshot()`, which leaves the model out, and use `from_snapshot(snapshot, model)`"
                )


def _functions(value: Any) -> Iterator[FunctionType]:
    """Yield the functions among the first `_MOST` objects of a model or loss."""
    waiting = deque([value])
    for _ in range(_MOST):
        if not waiting:
            return
        value = waiting.popleft()
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, set)):
            waiting.extend(value)
        elif hasattr(value, "__dict__") and not isinstance(value, (type, ModuleType)):
            waiting.extend(vars(value).values())

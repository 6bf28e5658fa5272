"""PyTorch and CatBoost, or stand-ins where they are not installed: both are too large for the tests of everyday.

A stand-in has what `attributary_explainers` calls, with the same names, arguments and results, and no more. The tests
of `tests/explainers/models/trained` pass with either: install the real one to see.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """Let `import torch` or `import catboost` give the library, or its stand-in where it is not installed."""
    before = dict(sys.modules)
    module = _found(name)
    if hasattr(module, "IS_STAND_IN"):
        sys.modules.update({name: module, **getattr(module, "MODULES", {})})
    try:
        yield module
    finally:
        for one in [one for one in sys.modules if one.split(".")[0] == name and one not in before]:
            if hasattr(module, "IS_STAND_IN"):
                del sys.modules[one]


def _found(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        return importlib.import_module(f"{__name__}.{name}_stand_in")

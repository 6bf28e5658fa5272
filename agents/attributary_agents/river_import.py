"""Import of River without the libraries it imports for others.

That saves 45 MB of a worker, 95 where scikit-learn is installed.

River calls three functions of scipy.stats, which is imported then, and one of scipy.integrate, which numpy has as well,
the same to the last bit. Where they are installed it imports scikit-learn and SQLAlchemy, for data sets that no worker
reads.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np


class _Late:
    """Placeholder for a name of scipy.stats until it is used.

    It is used when it, or something of it, is called.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by who looks at all modules
            raise AttributeError(name)
        return getattr(getattr(import_module("scipy.stats"), self._name), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return getattr(import_module("scipy.stats"), self._name)(*args, **kwargs)


def import_river() -> None:
    """Import the explainers, and River with them.

    Later imports find all modules.
    """
    stats, integrate = ModuleType("scipy.stats"), ModuleType("scipy.integrate")
    vars(stats)["__getattr__"], vars(integrate)["trapezoid"] = _Late, np.trapezoid
    # None is an ImportError, which River expects where these two are not installed.
    given: dict[str, Any] = {"scipy.stats": stats, "scipy.integrate": integrate, "sklearn": None, "sqlalchemy": None}
    names = given.keys() - sys.modules.keys()
    sys.modules.update({name: given[name] for name in names})
    try:
        import_module("attributary_explainers.monitor")
    finally:
        for name in names:
            del sys.modules[name]

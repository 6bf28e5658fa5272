"""Imports River without the libraries that it imports for what a worker does not use.

River imports scipy.stats and, where they are installed, SQLAlchemy and scikit-learn, which brings pandas. Together they
take a third of the private memory of a worker, and of its start. A stand-in takes the place of such a library while
River is imported. It is left behind in River's modules alone: at its first use it imports the library, and is that
library from then on. Who imports a library later gets the library itself.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

BESIDE_RIVER = (
    "numpy.f2py",  # these two by scipy.special, which copies all names of numpy
    "numpy.testing",
    "scipy.integrate",
    "scipy.io",
    "scipy.io.arff",
    "scipy.io.arff._arffread",
    "scipy.ndimage",
    "scipy.sparse",
    "scipy.stats",
    "sklearn",
    "sklearn.utils",
    "sqlalchemy",
)
"""What River imports for metrics, distributions, detectors and data sets that few models are made of."""

_SAME: dict[str, dict[str, Any]] = {"scipy.integrate": {"trapezoid": np.trapezoid}}
"""Functions that numpy has as well, with the same result to the last bit: the area of every ROC curve takes one."""

_RIVER = (
    *("active", "anomaly", "bandit", "base", "compose", "datasets", "drift", "dummy", "ensemble", "feature_selection"),
    *("forest", "imblearn", "linear_model", "metrics", "naive_bayes", "neighbors", "optim", "preprocessing", "proba"),
    *("stats", "tree", "utils"),
)
"""Packages of River that are imported by this package or by the explainers."""


def import_river() -> None:
    """Import River and scipy.special, with stand-ins for what River imports beside what is used of it."""
    with deferred(BESIDE_RIVER):
        import_module("scipy.special")
        for name in _RIVER:
            import_module(f"river.{name}")


def import_for(root: object) -> list[str]:
    """Import what the parts of an object use and have stand-ins for; return the names, which may be none.

    No observation waits for an import then. What a class uses for many rows at once is not counted: a worker never
    asks for that.

    Parameters
    ----------
    root
        A model, or what holds models, metrics and detectors.
    """
    classes, seen, rest = set[type](), set[int](), [root]
    while rest:
        one = rest.pop()
        if id(one) in seen or isinstance(one, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(one))
        classes.update(type(one).__mro__)
        rest += gc.get_referents(one)
    return sorted({name for one in classes for name in _import_for(one)})


def _import_for(one: type) -> Iterator[str]:
    known = vars(sys.modules.get(one.__module__, ModuleType("")))
    for name, method in vars(one).items():
        function = getattr(method, "__func__", method)  # of a static method or one of the class
        if "many" in name or not isinstance(function, FunctionType):
            continue
        for used in function.__code__.co_names:
            stand_in = known.get(used)
            module = stand_in._module if isinstance(stand_in, _Name) else stand_in
            if isinstance(module, _Module) and module.__name__ not in _SAME:
                import_module(module.__name__)
                yield module.__name__


@contextmanager
def deferred(names: Sequence[str]) -> Iterator[None]:
    """Put stand-ins in the place of modules while others are imported that would import them.

    A module that is imported already, or is not installed, has none.

    Parameters
    ----------
    names
        Full names of modules, each after the package that it is in, if that has a stand-in too.
    """
    stand_ins: dict[str, _Module] = {}
    for name in names:
        package = name.partition(".")[0]
        if name not in sys.modules and (package in stand_ins or find_spec(package) is not None):
            stand_ins[name] = sys.modules[name] = _Module(name, stand_ins)
    for name, stand_in in stand_ins.items():
        package, _, last = name.rpartition(".")
        if package:  # as after an import; numpy looks for what it imports by need in no other way
            setattr(import_module(package), last, stand_in)
    try:
        yield
    finally:
        _withdraw(stand_ins)


def _withdraw(stand_ins: dict[str, _Module]) -> None:
    """Let every later import find the modules themselves."""
    for name, stand_in in stand_ins.items():
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        package, _, last = name.rpartition(".")
        parent = sys.modules.get(package)
        if parent is not None and vars(parent).get(last) is stand_in:
            delattr(parent, last)
    stand_ins.clear()


class _Module(ModuleType):
    """Stands for a module.

    Parameters
    ----------
    name
        The full name.
    stand_ins
        All that were made with this one, as long as they can be imported.
    """

    def __init__(self, name: str, stand_ins: dict[str, _Module]) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None, is_package=True)  # what find_spec answers with
        self._stand_ins = stand_ins
        vars(self).update(_SAME.get(name, {}))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by the import system, and by who looks at all modules
            raise AttributeError(name)
        if self._stand_ins:  # `from module import name`
            return _Name(self, name)
        found = _read(self.__name__, name)
        setattr(self, name, found)  # the next time it is found at once
        return found


class _Name:
    """Stands for what River has imported by name from a module that has a stand-in."""

    def __init__(self, module: _Module, name: str) -> None:
        self._module, self._name = module, name

    def _found(self) -> Any:
        _withdraw(self._module._stand_ins)  # where it is used while it is imported
        return getattr(self._module, self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._found(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._found()(*args, **kwargs)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._found())

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self._found(),)


def _read(module: str, name: str) -> Any:
    imported = import_module(module)
    return getattr(imported, name) if hasattr(imported, name) else import_module(f"{module}.{name}")

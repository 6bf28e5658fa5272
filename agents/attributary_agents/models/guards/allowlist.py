"""Lets through what stored models are made of, and nothing else: a pickle that somebody has forged runs nothing.

What is stored is read with an `Allowlist`, whether it is signed or not. It lets through what `known_types` lists, what
the configuration of the model names, and what `control.allowed` and `state.allowed` add.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from io import BytesIO
from types import FunctionType
from typing import Any

from attributary_explainers import dump_model, load_model

from ...config.models import ModelConfig
from ...errors import ForeignTypeError
from .known_types import EXACT, EXPLAINERS, METHODS, MODULES_OF_CODE, NEVER, RIVER, RIVER_ASIDE, SKLEARN
from .pickled_names import Name, names_in

_RULED = frozenset({"river", "numpy", "scipy", "sklearn", "attributary_explainers", "attributary_agents"})
"""Packages of which a model's configuration or `control.allowed` lets nothing further through."""


class Allowlist:
    """Says which classes and functions a stored model may hold, and finds them.

    Parameters
    ----------
    config
        The model's configuration. The packages of its classes and factories are trusted with their classes, what its
        model holds as it is made here with functions as well; None: plain data, which hold neither.
    make
        Makes the model of the configuration, to see what it holds; asked for only where the lists do not know a type.
    """

    def __init__(self, config: ModelConfig | None = None, make: Callable[[ModelConfig], Any] | None = None) -> None:
        self._config = config
        self._make = make

    def find_class(self, module: str, name: str) -> Any:
        """Return the class or function of this module and qualified name.

        Raises
        ------
        ForeignTypeError
            It is not let through; nothing has been imported then.
        """
        path = f"{module}.{name}"
        if path == "builtins.getattr":
            return self._method
        if (listed := _listed(module, name)) is not None:
            return listed
        if self._may_import(module):
            found = _resolve(module, name)
            if isinstance(found, type) and self._is_class_allowed(found):
                return found
        if not _is_never(module, path) and (path in self._exact or path in self._own_types()):
            found = _resolve(module, name)
            if isinstance(found, type) or _root(module) not in sys.stdlib_module_names:
                return found
        raise self._refused(path)

    @cached_property
    def _exact(self) -> set[str]:
        return {name for name in (self._config.allowed if self._config else ()) if not name.endswith(".")}

    @cached_property
    def _packages(self) -> set[str]:
        given = self._config.allowed if self._config else ()
        named = {name for name in map(_root, _named(self._config)) if not _is_ruled(name)}
        return named | {name.rstrip(".") for name in given if not _is_ruled(_root(name))}

    def load(self, data: bytes) -> Any:
        """Return what `dump_model` saved.

        Raises
        ------
        ForeignTypeError
            It holds what is not let through; all of it is named at once.
        """
        try:
            return load_model(data, self.find_class)
        except ForeignTypeError:
            if refusal := self.refusal(names_in(data)):
                raise refusal from None
            raise  # a method, or what no pickler writes

    def refusal(self, names: Iterable[Name]) -> ForeignTypeError | None:
        """Return the error that tells of all of these names that are not let through; None where all are."""
        refused = []
        for module, name in names:
            try:
                self.find_class(module, name)
            except ForeignTypeError:
                refused.append(f"{module}.{name}")
            except Exception:  # noqa: BLE001 - it is let through and not there: what loads it says so
                continue
        return self._refused(*refused) if refused else None

    def _method(self, owner: Any, name: Any) -> Any:
        """Stand in for `getattr`, by which a pickle names the method of an object: only those that are known."""
        kind = owner if isinstance(owner, type) else type(owner)
        path = _method_path(kind, name) if isinstance(name, str) else ""
        if path in METHODS or path in self._exact or (path and path in self._own_types()):
            return getattr(owner, name)
        raise self._refused(path or f"{kind.__module__}.{kind.__qualname__}.{name}")

    def _may_import(self, module: str) -> bool:
        listed = _is_listed(module)
        return _is_below(module, self._packages) and not _is_never(module, module) if listed is None else listed

    def _is_class_allowed(self, found: type) -> bool:
        # By where it is defined: a module also holds what it has imported.
        return self._may_import(found.__module__) and _is_of_model(found)

    def _own_types(self) -> frozenset[str]:
        if self._config is None or self._make is None:
            return frozenset()
        if self._config.own_types is None:
            self._config.note_own_types(_types_of(self._make, self._config))
        return self._config.own_types or frozenset()

    def _refused(self, *paths: str) -> ForeignTypeError:
        never = [path for path in paths if self._config is None or path in self._exact or _is_in_vain(path)]
        listed = [path for path in paths if path not in never]
        said = []
        if listed:
            are, them = ("is", "it") if len(listed) == 1 else ("are", "them")
            said.append(
                f"it holds {_quoted(listed)}, which {are} not among the types that stored models may hold. Where the "
                f"model is made of {them}, write `state: {{allowed: [{', '.join(listed)}]}}` into the configuration"
            )
        if never:
            are, they, them = ("is", "it", "it") if len(never) == 1 else ("are", "they", "them")
            said.append(
                f"it holds {_quoted(never)}, which {are} never read back, whatever is allowed: {they} could run or "
                f"read what is given. Keep {them} out of the model's attributes"
            )
        return ForeignTypeError(". ".join(said))


@lru_cache(maxsize=4096)
def _listed(module: str, name: str) -> Any:
    """Return the class or function that stored models of any configuration may hold; None for any other."""
    if f"{module}.{name}" in EXACT:
        return _resolve(module, name)
    if not _is_listed(module):
        return None
    found = _resolve(module, name)
    return found if isinstance(found, type) and _is_listed(found.__module__) and _is_of_model(found) else None


def _is_listed(module: str) -> bool | None:
    """Return whether classes of this module are let through whatever the configuration says; None: it decides."""
    root = _root(module)
    if root == "river":
        parts = module.split(".")
        return len(parts) > 1 and parts[1] in RIVER and not RIVER_ASIDE & set(parts)
    if root == "sklearn":
        return not module.startswith(("sklearn.datasets", "sklearn.externals"))
    if root == "attributary_explainers":
        return _is_below(module, EXPLAINERS)
    return None


def _is_of_model(found: type) -> bool:
    module = found.__module__
    if _is_never(module, f"{module}.{found.__qualname__}"):
        return False
    if _root(module) == "sklearn" and not _is_below(module, SKLEARN):
        from sklearn.base import BaseEstimator  # an extra: it is there, for one of its classes is

        return issubclass(found, BaseEstimator)
    return True


def _types_of(make: Callable[[ModelConfig], Any], config: ModelConfig) -> frozenset[str]:
    """Return what the pickle of a model names as it is made here, methods included."""
    try:
        reader = _Recorder(dump_model(make(config)))
        reader.load()
    except Exception:  # noqa: BLE001 - a model that cannot be made or saved names nothing; others say so
        return frozenset()
    return frozenset(reader.names)


class _Recorder(pickle.Unpickler):
    """Reads bytes that were made a moment ago, and writes down what they name."""

    def __init__(self, data: bytes) -> None:
        super().__init__(BytesIO(data))
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if found is getattr:
            return self._method
        self.names.add(f"{module}.{name}")
        return found

    def _method(self, owner: Any, name: str) -> Any:
        self.names.add(_method_path(owner if isinstance(owner, type) else type(owner), name))
        return getattr(owner, name)


def _method_path(kind: type, name: str) -> str:
    """Return the path of a method by the class that defines it; empty where that has no function of this name."""
    for one in inspect.getmro(kind):
        found = vars(one).get(name)
        if found is not None:
            is_method = isinstance(found, FunctionType | classmethod | staticmethod) or inspect.ismethoddescriptor(
                found
            )
            return f"{one.__module__}.{one.__qualname__}.{name}" if is_method else ""
    return ""


def _resolve(module: str, name: str) -> Any:
    found: Any = importlib.import_module(module)
    *outer, last = name.split(".")
    for part in outer:
        found = getattr(found, part)
        if not isinstance(found, type):
            raise ForeignTypeError(f"it holds {module}.{name!r}, and {part} is no class: no worker has written that")
    return getattr(found, last)


def _named(config: ModelConfig | None) -> Iterator[str]:
    """Yield the dotted paths of the classes and of the factory in a model's configuration, at any depth."""
    stack: list[Any] = [config.spec] if config else []
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            yield from (one[key] for key in ("class", "factory") if isinstance(one.get(key), str))
            stack += one.values()
        elif isinstance(one, list):
            stack += one


def _quoted(paths: list[str]) -> str:
    return ", ".join(map(repr, paths))


def _is_in_vain(path: str) -> bool:
    """Return whether a path would not be let through if the configuration named it; nothing is imported for it."""
    module = path
    while module not in sys.modules:
        module, dot, _ = module.rpartition(".")
        if not dot:
            return _is_never(path, path)
    if _is_never(module, path):
        return True
    found = vars(sys.modules[module]).get(path[len(module) + 1 :])
    return _root(module) in sys.stdlib_module_names and found is not None and not isinstance(found, type)


def _root(path: str) -> str:
    return path.split(".")[0].split(":")[0]


def _is_ruled(root: str) -> bool:
    return root in _RULED or root in sys.stdlib_module_names


def _is_below(module: str, packages: Any) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def _is_never(module: str, path: str) -> bool:
    return _root(module) in MODULES_OF_CODE or _is_below(path, NEVER)


PLAIN = Allowlist()
"""Of plain data with numpy's types, in which models are bytes of their own."""

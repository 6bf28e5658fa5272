"""What a fast path is: an evaluator of rows that gives what the model gives, and knows when it does not."""

from __future__ import annotations

import abc
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from operator import attrgetter
from types import ModuleType
from typing import Any

from .schema import Array, Schema

PROVED_RIVER = ("0.26.1",)
"""Releases of River for which the tests have shown every fast path to equal the model."""


class NotCoveredError(Exception):
    """This model, or its state now, has no fast path; the message says why. The model itself is asked."""


class Evaluator(abc.ABC):
    """Predictions of one model for encoded rows, equal to the model's own to 1e-12 at every moment of its life.

    It only reads the model. What it keeps of it (flat arrays) it compares with the live model at each call, and
    refreshes where that has changed. What it returns depends on the model as it is now and on the rows alone, to the
    last bit, never on earlier calls: sums run in an order that the model or the schema says.

    Parameters
    ----------
    model
        The model; referred to, not copied.
    schema
        Of the rows. Its categories may grow.

    Raises
    ------
    NotCoveredError
        The model is of another type or has parameters that are not covered.
    """

    relies_on: tuple[tuple[type | ModuleType, str, Any], ...] = ()
    """Class or module, attribute and function for everything that the path reproduces: see `proved`."""

    labels: tuple[Any, ...] | None = None
    """Of a classifier: the class of each column that the last call returned, in the order of `sort_key`."""

    @abc.abstractmethod
    def predict(self, X: Array) -> Array:
        """Predictions of rows.

        Parameters
        ----------
        X
            Shape (rows, features), C order, at least one row; not changed. Often most rows share most values with the
            first one, which is worth using; nothing else may depend on that.

        Returns
        -------
        Array
            Shape (rows, classes): probabilities, 0 for a class that the model does not name. Or shape (rows, 1):
            numbers. A row of NaN where the model has no prediction. May be overwritten by the next call.

        Raises
        ------
        NotCoveredError
            The model is in a state that is not covered: this time, the model itself is to be asked.
        """


Factory = Callable[[Any, Schema], Evaluator]


def proved(hashes: Mapping[tuple[type | ModuleType, str], str]) -> tuple[tuple[type | ModuleType, str, Any], ...]:
    """The functions that a path reproduces, as they are in this process.

    Parameters
    ----------
    hashes
        Class and name of each method or property, or module and name of a function, with the hash of its source when it
        was proved; `source_hash` gives it. Empty for one that has no source (Rust, Cython), which only the release of
        River vouches for.

    Raises
    ------
    NotCoveredError
        River is another release, or a method is not the one that was proved: changed, patched or overridden.
    """
    river = version("river")
    if river not in PROVED_RIVER:
        raise NotCoveredError(f"River {river} is not one of {', '.join(PROVED_RIVER)}, which were proved")
    found = []
    for (kind, name), expected in hashes.items():
        function = getattr(kind, name, None)
        if source_hash(function) != expected:
            raise NotCoveredError(f"{kind.__name__}.{name} is not the one that the fast path was proved for")
        found.append((kind, name, function))
    return tuple(found)


def check_instance(part: Any) -> None:
    """Refuse a part of a model with a method of its own, which its class does not tell of.

    Raises
    ------
    NotCoveredError
        An attribute of the object hides a method of its class.
    """
    for name, value in getattr(part, "__dict__", {}).items():
        if callable(value) and callable(getattr(type(part), name, None)):
            raise NotCoveredError(f"this {type(part).__name__} has a {name} of its own")


@cache
def source_hash(function: Any) -> str:
    """First 12 hex digits of the SHA-256 of a function's source; "" where there is none."""
    function = getattr(function, "fget", None) or getattr(function, "__func__", function)
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()[:12]
    except (TypeError, OSError):
        return ""


class Relied:
    """Whether everything that a path relies on is still what it was: nothing has been patched meanwhile.

    Asked at each observation: `attrgetter` reads all attributes of a class in one call.

    Parameters
    ----------
    relied
        An evaluator's `relies_on`.
    """

    def __init__(self, relied: Iterable[tuple[type | ModuleType, str, Any]]) -> None:
        self.on = relied
        by_kind: dict[type | ModuleType, list[tuple[str, Any]]] = {}
        for kind, name, function in relied:
            by_kind.setdefault(kind, []).append((name, function))
        self._groups = []
        for kind, found in by_kind.items():
            names, functions = zip(*found, found[0], strict=True)  # of a single name it would give no tuple
            self._groups.append((kind, attrgetter(*names), functions))

    def unchanged(self) -> bool:
        """Whether it is."""
        try:
            for kind, read, functions in self._groups:
                if read(kind) != functions:
                    return False
        except AttributeError:
            return False
        return True


def unchanged(relied: Iterable[tuple[type | ModuleType, str, Any]]) -> bool:
    """`Relied.unchanged`, asked once."""
    return Relied(relied).unchanged()

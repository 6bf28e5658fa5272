"""Reads what a model keeps by the name of a feature, for names that are always the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any


class Names:
    """Looks up names in a mapping: in one call where it is known to have them all.

    Whether it has is asked anew when it is another mapping or has another length.

    Parameters
    ----------
    names
        The names, in the order in which their values are wanted.
    """

    def __init__(self, names: Sequence[Any]) -> None:
        self._names = tuple(names)
        self._zeros = (0.0,) * len(self._names)
        # Of one name, `itemgetter` makes no tuple.
        self._all: Callable[[Any], tuple[Any, ...]] | None = itemgetter(*names) if len(self._names) > 1 else None
        self._mapping: Any = None
        self._length = -1
        self._has_all = False

    @property
    def has_all(self) -> bool:
        """Whether the mapping that was read last has all names."""
        return self._has_all

    def read(self, mapping: Any) -> Sequence[Any]:
        """Return the value of each name, 0 where the mapping does not have it; no name is added to it."""
        if mapping is not self._mapping or len(mapping) != self._length:
            self._mapping, self._length = mapping, len(mapping)
            self._has_all = all(name in mapping for name in self._names)
        if self._has_all and self._all is not None:
            try:
                return self._all(mapping)
            except KeyError:  # one has been taken out, and another one put in
                self._has_all = False
        # `get` and not `[]`: River's scalers are defaultdicts, which would take up the name.
        return [*map(mapping.get, self._names, self._zeros)]

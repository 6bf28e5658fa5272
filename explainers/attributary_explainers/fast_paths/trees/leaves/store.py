"""What `Structure` asks of a store of leaves, and what a store asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class NewLabelsError(Exception):
    """A tree has met a class that has no column yet."""


class Known(Protocol):
    """Has what is known of trees, as compiled code reads it: see `Structure`."""

    table: npt.NDArray[np.int64]
    known: npt.NDArray[np.int64]


class LeafStore(Protocol):
    """Keeps the numbers of leaves, each in its slot."""

    records: list[Any]
    """By slot, what has the leaf, and as `siblings` and `place` where it is."""
    lists: tuple[Any, ...]
    """What compiled code reads of them, see `entries.known_of`."""

    def put(self, leaf: Any, tree: Any, siblings: Sequence[Any] | None, place: int) -> int:
        """Return a slot for the leaf; None stands for the leaf of a tree that has not learnt.

        Parameters
        ----------
        siblings, place
            The live list of children that holds it, and where; None for a root.
        """

    def follow_labels(self, tree: Any) -> None:
        """Raise `NewLabelsError` where a tree, of which more may have changed than a known leaf, has met a class."""

    def drop(self, slot: int) -> None:
        """Forget the leaf, which is gone."""

    def take_in(self, slot: int, weight: float | None, *, gone: bool, renewed: bool = False) -> bool:
        """Return whether the leaf has learnt this weight since it was read, and nothing else has happened to it.

        If so, it is read again, unless it is gone. None stands for one observation, whatever its weight, at a leaf that
        counts them. `renewed`: its observers may be others, too.

        Raises
        ------
        NotCoveredError
            The leaf is not covered any more.
        NewLabelsError
            It has met a class that has no column yet.
        """

    def take_in_all(self, trees: Sequence[Any], structure: Known) -> list[int] | None:
        """Take in, without Python, what trees have learnt; return which are to be looked at, None for all."""

    def refresh(self, reached: Sequence[int]) -> None:
        """Read those of the leaves in these slots that have changed."""

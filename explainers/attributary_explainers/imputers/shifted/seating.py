"""Which features players have, by their numbers in an encoding."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...typing import Ints
from ..base import Players
from .encoding import Encoding


class Seating:
    """The features of each player by number.

    Parameters
    ----------
    players
        Player to its features.
    encoding
        Says which number a feature has. A feature that it does not know has none.
    """

    def __init__(self, players: Players, encoding: Encoding) -> None:
        self._players, self._encoding = dict(players), encoding
        position = encoding.position
        self._of = [[position[name] for name in names if name in position] for names in players.values()]
        known = [number for numbers in self._of for number in numbers]
        self._n = len(position)
        self._never = np.setdiff1d(np.arange(len(position)), known).astype(np.int64)
        self.single: Ints | None = None
        """Shape (players,): the feature of each, where all have exactly one that is known."""
        if all(len(numbers) == 1 == len(names) for numbers, names in zip(self._of, players.values(), strict=True)):
            self.single = np.array(known, dtype=np.int64)

    @cached_property
    def each(self) -> tuple[Ints, Ints]:
        """Orders and sizes, as for `arranged`, in which each player alone is drawn."""
        d = len(self._of)
        numbers = np.arange(d)
        others = np.tile(numbers, (d, 1))[~np.eye(d, dtype=np.bool_)].reshape(d, max(d - 1, 0))
        return np.column_stack([others, numbers]), np.full((d, 1), d - 1)

    @cached_property
    def each_arranged(self) -> tuple[Ints, Ints]:
        """The same by feature."""
        return self.arranged(*self.each)

    @property
    def has_all(self) -> bool:
        """Whether each feature belongs to a player."""
        return not len(self._never)

    def holds(self, players: Players, encoding: Encoding) -> bool:
        """Return whether this is the seating of the players by an encoding."""
        return encoding is self._encoding and players == self._players

    def arranged(self, orders: Ints, sizes: Ints) -> tuple[Ints, Ints]:
        """Return the features in each order of their players, and how many of them are in each coalition.

        What belongs to no player comes first: it is never drawn.

        Parameters
        ----------
        orders
            Shape (orders, players): the players by number.
        sizes
            Shape (orders, coalitions of each): how many of them, the first ones, each coalition has.
        """
        never = self._never
        if self.single is not None:
            arranged = self.single[orders]
            if not len(never):
                return arranged, sizes
            return np.concatenate([np.tile(never, (len(orders), 1)), arranged], axis=1), len(never) + sizes
        features, stops = np.empty((len(orders), self._n), dtype=np.int64), np.empty_like(sizes)
        for o, order in enumerate(orders.tolist()):
            numbers = [self._of[player] for player in order]
            features[o] = [*never, *(number for own in numbers for number in own)]
            stops[o] = (len(never) + np.cumsum([0, *map(len, numbers)]))[sizes[o]]
        return features, stops

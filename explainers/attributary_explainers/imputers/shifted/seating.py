"""Which features players have, by their numbers in an encoding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
        self._never = np.setdiff1d(np.arange(len(position)), known).astype(np.int64)
        self.single: Ints | None = None
        """Shape (players,): the feature of each, where all have exactly one that is known."""
        if all(len(numbers) == 1 == len(names) for numbers, names in zip(self._of, players.values(), strict=True)):
            self.single = np.array(known, dtype=np.int64)

    def holds(self, players: Players, encoding: Encoding) -> bool:
        """Return whether this is the seating of the players by an encoding."""
        return encoding is self._encoding and players == self._players

    def arranged(self, order: npt.NDArray[np.intp], sizes: Ints) -> tuple[Ints, Ints]:
        """Return the features in the order of their players, and how many there are in each coalition.

        What belongs to no player comes first: it is never drawn.

        Parameters
        ----------
        order
            Shape (players,): the players by number.
        sizes
            How many of them, the first ones, each coalition has.
        """
        if self.single is not None:
            return np.concatenate([self._never, self.single[order]]), len(self._never) + sizes
        numbers = [self._of[player] for player in order.tolist()]
        arranged = np.array([*self._never, *(number for own in numbers for number in own)], dtype=np.int64)
        n_before = len(self._never) + np.cumsum([0, *map(len, numbers)])
        return arranged, n_before[sizes].astype(np.int64)

"""Base of imputers, which give rows with removed features replaced.

A removed feature takes the value that the drawn observation had. If that observation lacked the feature, the row lacks
it too: absence is as much an observed fact as a value.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InvalidParameterError
from ..evaluation.schema import Encoded
from ..notebook.described import Described
from ..typing import Features, Groups, Prediction, Snapshot
from .requests import Players as Players
from .requests import Request, RowsRequest, walked_coalitions
from .reservoirs import Reservoir

Rows: TypeAlias = list[dict[Any, Any]]

REMOVAL_NAMES = ("interventional", "product", "observational", "observational-trees")
"""Names that `removal` takes; a constant is an imputer of its own: `ConstantImputer(values)`."""

SAMPLING_NAMES = ("stratified", "independent")
"""Names that `sampling` takes: how draws are spread over the reservoir."""


class PlayersByGroup:
    """Finds the players of an observation: its groups and single features.

    Players come in the order of the observation's features.

    A declared group always plays, even where the observation has none of its features: sparse one-hot columns.
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self.group_of = {feature: group for group, features in groups.items() for feature in features}
        """Feature to the group that it is in."""
        self._names: tuple[Any, ...] = ()
        self._alone: dict[Any, Sequence[Any]] = {}

    def of(self, x: Features) -> dict[Any, Sequence[Any]]:
        """Return the players of an observation; not to be changed.

        Raises
        ------
        InvalidParameterError
            A feature has the name of a group.
        """
        if not self._groups:
            names = tuple(x)
            if names != self._names:
                self._names, self._alone = names, {feature: (feature,) for feature in x}
            return self._alone
        players: dict[Any, Sequence[Any]] = {}
        for feature in x:
            player = self.group_of.get(feature)
            if player is None:
                if feature in self._groups:
                    raise InvalidParameterError("groups", "names that no feature has", feature)
                players[feature] = (feature,)
            else:
                players[player] = self._groups[player]
        players.update((name, features) for name, features in self._groups.items() if name not in players)
        return players


class Draws(NamedTuple):
    """Rows to evaluate, and where their replacements came from."""

    rows: list[Rows]
    """The rows of the draws of each player or coalition."""
    slots: npt.NDArray[np.intp] | None
    """Slots of the reservoir, shape (players, draws), or (draws,) where all coalitions share them.

    None where the draws come from no slot.
    """


class Imputer(Described, abc.ABC):
    """Gives removed features other values.

    An explainer calls `replace_each` or `restrict` for an observation, then `update` with it, so that a draw never
    sees the observation that is explained.
    """

    name: ClassVar[str]
    reservoir: Reservoir
    n_independent: ClassVar[bool] = True
    """Whether more draws say more; False where all are the same."""
    in_halves: bool = False
    """Whether the explainer needs the two sets of `restrict` to be independent of each other, stored rows included."""

    @property
    def ready(self) -> bool:
        """Whether there is something to draw from."""
        return bool(self.reservoir.notes)  # of which there is one for each row

    @abc.abstractmethod
    def replace_each(self, x: Features, players: Players, n: int, rng: np.random.Generator) -> Draws:
        """Return `n` rows per player: its features replaced, by own draws (PFI)."""

    @abc.abstractmethod
    def restrict(
        self, x: Features, players: Players, coalitions: Sequence[Sequence[Any]], n: int, rng: np.random.Generator
    ) -> Draws:
        """Return `n` rows per coalition: it keeps `x`, all else is drawn (SAGE).

        The coalitions of one call share their draws as far as they can: a feature that the model ignores then changes
        no prediction. The sets of `strata.independent_sets` are independent of each other.
        """

    def request_each(
        self, x: Features, players: Players, n: int, rng: np.random.Generator, encoded: Encoded | None = None
    ) -> Request:
        """Return the rows of `replace_each` as a request.

        Parameters
        ----------
        encoded
            The observation as an array, and its schema, where the model has a fast path.
        """
        return RowsRequest(*self.replace_each(x, players, n, rng))

    def request_coalitions(
        self,
        x: Features,
        players: Players,
        orders: npt.NDArray[np.intp],
        n: int,
        rng: np.random.Generator,
        encoded: Encoded | None = None,
    ) -> Request:
        """Return a request for the rows of `restrict` along orders of players.

        Each order stands for the coalitions that it grows through: see `walked_coalitions`.

        Parameters
        ----------
        orders
            Shape (orders, players): the players by number.
        encoded
            The same as for `request_each`.
        """
        return RowsRequest(*self.restrict(x, players, walked_coalitions(list(players), orders), n, rng))

    def update(self, x: Features, y_pred: Prediction, rng: np.random.Generator) -> int | None:
        """Take in an explained observation; return the slot it changed, or None."""
        return self.reservoir.update(x, rng)

    def _facts(self) -> list[tuple[str, str]]:
        return self.reservoir._facts()

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that the imputer was made with, as plain data."""
        return {"removal": self.name, **self.reservoir.parameters}

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {"reservoir": self.reservoir.snapshot()}

    def restore(self, state: Snapshot) -> None:
        """Take the state of an imputer with equal parameters."""
        self.reservoir.restore(state["reservoir"])

"""Protocols of drawn objects, so that plots need none of their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Line: TypeAlias = tuple[list[Any], list[float]]
"""Grid values and, for each, a prediction or mean prediction."""


class Mark(Protocol):
    """A mark of a model change in a history, as `ChangeMark` is."""

    @property
    def position(self) -> float:
        """Where the change was explained."""

    @property
    def since(self) -> float:
        """Where its alarm was raised."""

    @property
    def label(self) -> str:
        """Short text, perhaps empty."""


class Explained(Protocol):
    """Anything with an importance now, and perhaps a `half_width`."""

    @property
    def importance(self) -> Mapping[Any, float]:
        """Importance of each feature."""


class History(Protocol):
    """Importance over time, as `ImportanceHistory` has it."""

    def __len__(self) -> int: ...

    @property
    def explainer(self) -> str | None:
        """Name of the explainer."""

    @property
    def unit(self) -> str | None:
        """Unit of the importances."""

    @property
    def positions(self) -> Floats:
        """Positions of the records, ascending."""

    @property
    def features(self) -> list[Any]:
        """Every feature recorded, the largest share of the newest record first."""

    @property
    def names(self) -> list[Any]:
        """Every feature recorded, in an order that does not change."""

    @property
    def changes(self) -> Sequence[Mark]:
        """Marks of model changes, ascending."""

    def series(self, feature: Any) -> tuple[Floats, Floats, Floats]:
        """Positions, importances and standard errors of a feature."""


class Dependence(Protocol):
    """Curves of partial dependence, as `IncrementalPDP` has them."""

    @property
    def pdp(self) -> dict[Any, Line]:
        """Feature to its grid values and the mean predictions there."""

    @property
    def ice(self) -> dict[Any, list[Line]]:
        """Feature to the lines of single observations."""

    @property
    def recent_numbers(self) -> dict[Any, list[float]]:
        """Feature to its recent values, for features that are numbers."""

    @property
    def chosen_label(self) -> Any:
        """Class whose probability is the prediction; None for a number."""


class MethodChange(Protocol):
    """A change in importance by a method, as `ImportanceChange` is."""

    @property
    def method(self) -> str:
        """`pfi` or `sage`."""

    @property
    def unit(self) -> str:
        """Name, unit and largest value of the importances' loss, in words."""

    @property
    def features(self) -> list[Any]:
        """Every feature that either side knows."""

    @property
    def before(self) -> dict[Any, float]:
        """Importance of the old model."""

    @property
    def before_std_error(self) -> dict[Any, float]:
        """Standard error of `before`."""

    @property
    def after(self) -> dict[Any, float]:
        """Importance of the new model."""

    @property
    def after_std_error(self) -> dict[Any, float]:
        """Standard error of `after`."""

    @property
    def delta(self) -> dict[Any, float]:
        """Change in importance per feature."""

    def significant(self) -> list[Any]:
        """Features whose change is beyond noise, the largest first."""


class Explanation(Protocol):
    """An explanation of a model change, as `ChangeExplanation` is."""

    @property
    def verdict(self) -> str | None:
        """Verdict on the change; None if unknown."""

    @property
    def n_observations(self) -> int:
        """Observation at which the change was explained."""

    @property
    def discrepancy(self) -> float:
        """Discrepancy between old and new model."""

    @property
    def first(self) -> MethodChange:
        """The change in importance by the first method."""

    @property
    def importances(self) -> Mapping[str, MethodChange]:
        """Method to the change in importance."""

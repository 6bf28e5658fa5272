"""Keeps an explainer's importance over time, and marks model changes."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from . import plots
from .batch.tables import BatchImportance
from .change.events import ChangeExplanation
from .errors import InvalidParameterError
from .incremental.base import IncrementalExplainer
from .notebook.cards import IMPORTANCE_COLUMNS, Card, figure, importance_rows
from .notebook.described import Described
from .notebook.frames import data_frame
from .ranking import BAND, shares
from .validation import check_integer, check_number

NAMED_IN_LABEL = 2
"""Features that the label of a change names at most; more are an ellipsis."""


@dataclass(frozen=True)
class ChangeMark:
    """A model change in a history: its position, its alarm and its text.

    Attributes
    ----------
    position
        Where it was explained.
    since
        Where the detector raised its alarm; equal to `position` where that is not known.
    label
        Short text, perhaps empty.
    """

    position: float
    since: float
    label: str

    @classmethod
    def naming(cls, position: float, since: float, features: Sequence[Any], delta: Mapping[Any, float]) -> Self:
        """Return a mark that names the first features and their directions."""
        parts = [f"{name} {'↑' if delta[name] > 0 else '↓'}" for name in features[:NAMED_IN_LABEL]]
        text = " ".join(parts) + (" …" if len(features) > NAMED_IN_LABEL else "")
        return cls(position, since, text or "changed")


class ImportanceHistory(Described):
    """The importances of an explainer over a stream, and model changes.

    Call `record` whenever a point of the curve is wanted, each observation or each hundredth. Values are copied.

    Memory is bounded. When `max_records` are there and one more comes, every second record is dropped, and from
    then on only every second (fourth, eighth, ...) further one is kept, so that the whole history stays evenly
    spaced. The first and the newest record are always there. Change marks are never thinned, but only the newest
    `max_records` are kept.

    Parameters
    ----------
    max_records
        Valid range >= 2; records. Larger keeps finer curves of long streams, at 16 bytes per record and feature.
    unit
        Unit of the importances, for the axis of a plot; None states the loss of the explainer.

    Raises
    ------
    InvalidParameterError
        `max_records` is out of its range.

    Examples
    --------
    >>> from attributary_explainers import IncrementalPFI
    >>> pfi = IncrementalPFI(lambda x: x["a"], loss="squared", alpha=0.5, seed=1)
    >>> history = ImportanceHistory()
    >>> for a in (0, 1, 1, 2):
    ...     importance = pfi.explain_one({"a": a, "b": 5}, a)
    ...     history.record(pfi)
    >>> history.positions.tolist()  # at the first observation there was nothing to draw from
    [2.0, 3.0, 4.0]
    >>> positions, values, half_widths = history.series("a")
    >>> values.tolist()[-1] == importance["a"]
    True
    >>> history.features
    ['a', 'b']
    >>> history.unit
    'squared loss: unit of the target, squared'
    """

    def __init__(self, max_records: int = 10_000, *, unit: str | None = None) -> None:
        self.max_records = check_integer("max_records", max_records, minimum=2)
        self._unit = unit
        self._kind: tuple[str | None, str | None] = None, None  # name of the explainer, and its loss in words
        self._positions = array("d")
        self._columns: dict[Any, tuple[array[float], array[float]]] = {}
        self._changes: list[ChangeMark] = []
        # Of all records taken so far, kept are those whose number is a multiple of the stride, and the newest.
        self._stride, self._n_taken = 1, 0

    def __len__(self) -> int:
        return len(self._positions)

    def record(self, explainer: Any, position: float | None = None) -> None:
        """Record the explainer's importance now, if it has any.

        The first record decides which explainer and which loss the history is of.

        Parameters
        ----------
        explainer
            Anything with `importance` and perhaps `half_width` or `std_error`: an explainer, or the result of a batch
            method.
        position
            Place in the stream, any unit, never smaller than the last. Equal to the last, it replaces that record.
            None is the number of observations that the explainer has been given, those that it could not explain
            included; what counts none, as a batch method's result, needs a position.

        Raises
        ------
        InvalidParameterError
            The position goes backwards, is not finite or is missing; or the explainer has no importance, or is of
            another name or loss than the one recorded before: their values are not comparable.
        """
        if not hasattr(explainer, "importance"):
            raise InvalidParameterError("explainer", "one that has an importance", explainer)
        if not (importance := dict(explainer.importance)):
            return
        kind = getattr(explainer, "name", None), getattr(getattr(explainer, "loss", None), "statement", None)
        if self._n_taken and kind != self._kind:
            raise InvalidParameterError("explainer", f"of the name and loss recorded before, {self._kind}", kind)
        position = _position_of(explainer) if position is None else position
        self._add(position, importance, _half_width_of(explainer))
        self._kind = kind

    def mark_change(self, change: ChangeExplanation | ChangeMark | float, label: str | None = None) -> None:
        """Mark a model change.

        Parameters
        ----------
        change
            An explanation, a mark, or the position of the change.
        label
            Text beside the mark. None keeps that of a mark, and names the features of an explanation that changed
            most, with an arrow.
        """
        if isinstance(change, ChangeExplanation):
            named, delta = (change.significant(), change.delta) if change.importances else ([], {})
            mark = ChangeMark.naming(float(change.n_observations), float(change.n_detected), named, delta)
            mark = mark if label is None else replace(mark, label=label)
        elif isinstance(change, ChangeMark):
            mark = change if label is None else replace(change, label=label)
        else:
            position = check_number("change", change, above=-math.inf, below=math.inf)
            mark = ChangeMark(position, position, label or "")
        self._changes = sorted([*self._changes, mark], key=lambda kept: kept.position)[-self.max_records :]

    @property
    def explainer(self) -> str | None:
        """Name of the recorded explainer; None if it has none, or no record."""
        return self._kind[0]

    @property
    def unit(self) -> str | None:
        """Unit of the importances: as given, or the loss in words, or None."""
        return self._kind[1] if self._unit is None else self._unit

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Positions of the records that are left, ascending; a copy."""
        return np.array(self._positions, dtype=np.float64)

    @property
    def features(self) -> list[Any]:
        """Recorded features, the largest share of the newest record first."""
        last = {name: values[-1] for name, (values, _) in self._columns.items()}
        share = shares({name: 0.0 if math.isnan(value) else value for name, value in last.items()})
        return sorted(share, key=lambda name: (-share[name], str(name)))

    @property
    def names(self) -> list[Any]:
        """Recorded features in order of first appearance, which never changes."""
        return list(self._columns)

    @property
    def changes(self) -> list[ChangeMark]:
        """The marks, ascending."""
        return list(self._changes)

    def series(self, feature: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return a feature's positions, importances and 95 % half-widths.

        They are copies of equal length. NaN stands where the feature had no importance (before it first appeared) or no
        interval.

        Raises
        ------
        InvalidParameterError
            The feature was never recorded.
        """
        if feature not in self._columns:
            raise InvalidParameterError("feature", f"one of {self.names}", feature)
        values, half_widths = self._columns[feature]
        return self.positions, np.array(values), np.array(half_widths)

    def plot(
        self,
        features: Iterable[Any] | None = None,
        top: int = 8,
        band: float = 1.0,
        changes: bool = True,
        ax: Any = None,
    ) -> Any:
        """Draw importance over time and return the Axes, see `plots.importance`."""
        return plots.importance(self, features, top, band, changes, ax)

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per record and feature.

        Its index is position and feature. Columns: importance, half_width, low and high (the 95 % interval).
        `to_frame()["importance"].unstack()` has a column for each feature.

        Raises
        ------
        ExplainerError
            pandas is not installed.
        """
        n, names = len(self), self.names
        series = [self.series(name)[1:] for name in names]
        values = np.array([of_one[0] for of_one in series]).T.ravel()
        widths = np.array([of_one[1] for of_one in series]).T.ravel()
        columns = {
            "position": np.repeat(self.positions, len(names)),
            "feature": names * n,
            "importance": values,
            "half_width": widths,
            "low": values - widths,
            "high": values + widths,
        }
        return data_frame(columns, ("position", "feature"))

    def _card(self) -> Card:
        facts = [("records", figure(len(self))), ("changes", figure(len(self._changes)))]
        if self.unit is not None:
            facts.append(("loss", self.unit))
        newest = {name: (values[-1], widths[-1]) for name, (values, widths) in self._columns.items() if values}
        if newest:
            facts.append(("newest record at", figure(self._positions[-1])))
        importance, widths = ({name: ends[i] for name, ends in newest.items()} for i in (0, 1))
        rows = importance_rows(importance, widths)
        return Card(repr(self), facts=facts, columns=IMPORTANCE_COLUMNS, rows=rows)

    def _add(self, position: float, importance: Mapping[Any, float], half_width: Mapping[Any, float]) -> None:
        position = check_number("position", position, above=-math.inf, below=math.inf)
        if self._positions and position < self._positions[-1]:
            raise InvalidParameterError("position", f"at least the last one, {self._positions[-1]:.15g}", position)
        if self._positions and position == self._positions[-1]:
            self._drop_newest()
        else:
            self._make_room()
            self._n_taken += 1
        for name in importance:
            if name not in self._columns:
                absent = array("d", [math.nan]) * len(self._positions)
                self._columns[name] = absent[:], absent[:]
        self._positions.append(position)
        for name, (values, half_widths) in self._columns.items():
            values.append(importance.get(name, math.nan))
            half_widths.append(half_width.get(name, math.nan))

    def _make_room(self) -> None:
        """Drop the newest record unless it is to stay, and thin full records."""
        if self._n_taken and (self._n_taken - 1) % self._stride:
            self._drop_newest()
        if len(self._positions) == self.max_records:
            self._stride *= 2
            self._positions = self._positions[::2]
            self._columns = {name: (values[::2], widths[::2]) for name, (values, widths) in self._columns.items()}

    def _drop_newest(self) -> None:
        self._positions.pop()
        for values, half_widths in self._columns.values():
            values.pop()
            half_widths.pop()


def _half_width_of(explainer: Any) -> Mapping[Any, float]:
    """Return half the width of each 95 % interval, or 1.96 standard errors."""
    found: Mapping[Any, float] | None = getattr(explainer, "half_width", None)
    if found is None:
        found = {name: BAND * error for name, error in (getattr(explainer, "std_error", None) or {}).items()}
    return found


def _position_of(explainer: Any) -> float:
    """Return the number of observations that an explainer has been given."""
    counted = 0 if isinstance(explainer, BatchImportance) else getattr(explainer, "n_observations", 0)
    if isinstance(explainer, IncrementalExplainer):
        counted += explainer.n_skipped
    if not counted:
        raise InvalidParameterError("position", f"given: {type(explainer).__name__} has counted no observations", None)
    return float(counted)

"""The route `loss`: reports the start, features and end of a loss shift."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self

from ..errors import InvalidParameterError, SnapshotError
from ..losses.labels import check_label
from ..losses.losses import as_loss
from ..missing import check_missing, is_missing, read_missing
from ..models.function import model_function, model_kind, resolve_loss
from ..models.river import final_step
from ..notebook.cards import figure
from ..notebook.described import Described
from ..notebook.rows import as_row, check_groups_there
from ..predictions import as_label, check_probabilities, is_usable, predict_rows, show_row
from ..snapshots import attributes, set_attributes
from ..typing import Features, Groups, Output, Snapshot
from ..validation import check_choice, check_groups, check_integer, check_number
from .events import LossEvent, LossShift, LossShiftEnd, LossShiftExplained, Moved
from .guard import LossGuard
from .holdout import Beside, check_features
from .reliability import ReliabilityRoute
from .route import LossRoute
from .rows import KeptRows
from .suspects import examine
from .tables import N_FIRST

_FORMAT = 6
_STATE = (
    *("n_observations", "_due", "_guarded_since", "_rows", "_rows_after", "_beside", "_n_leaves", "_split_at"),
    "_route",
)
ONCE_IN, ONCE_IN_OF_LEARNERS = 1e6, 3e4
_ASKED = 16
"""Every so many observations a tree that learns is asked for its leaves."""
_BEFORE = 100
"""Observations before an onset in which a split may be what it comes from."""
_LOSSES = {"probabilities": as_loss("brier"), "label": as_loss("zero_one"), "number": as_loss("absolute")}
"""With what the first label is compared, by what is predicted."""


class LossMonitor(Described):
    """A monitor that reports when a model, learning or not, gets worse.

    The loss of a model rises when the model is wrong more often, and also when observations are harder; probabilities
    show which of the two it is. Each report has a kind that says what to do (`Kind`).

    Of a model that does not learn and gives probabilities, it compares how often outcomes came as predicted, in the
    latest 1, 2, 4 ... 1024 blocks and in all before them (`ReliabilityTables`). Nothing is calibrated first: it is
    guarded as soon as the rarer class has come 30 times and the first block of 256 rows is full, at any base rate. What
    comes after a shift never enters its reference.

    Of any other model, the loss and up to three more signals are compared in the same way (`Signals`, `Ladder`): the
    *excess*, which is the loss less what the model itself expected to lose; the *slope*, which rises where predictions
    go further than targets follow; and the *level*, target less prediction. One that learns is reported on from
    observation 1344 on, and only where its loss rose; one of labels from 5300 on, one of numbers from 7000 on.

    Observations without a label or a prediction are left out. Labels may come late: call `update` in the order in
    which they come.

    Call `update(x, y, y_pred)` once per labelled observation, with the prediction made before; call `restart` where
    another version takes over.

    Parameters
    ----------
    model
        Asked for predictions when a shift is reported, to name features; None names none.
    output
        What y_pred is: `probabilities`, `label` or `number`; None goes by the model's kind, else by the first y_pred.
    learns
        Whether the model learns between observations; None: where it has the method `learn_one`, so False without a
        model. Say True where the predictions come from a model that learns: it corrects its errors, for instance after
        labels were swapped, before a monitor that does not know of its learning reports them.
    window
        Valid range >= 20. Observations from before and from after the onset that name the features. With a model they
        are stored.
    groups, missing
        As for the explainers.
    once_in
        Valid range >= 10 000. Observations in which one false shift may be reported. None is 10^6, and 30 000 for a
        model that learns, for which a late report is worth nothing.
    seed
        Seed of the generator that chooses stored observations and permutations.
    """

    _replaced = ("model",)

    def __init__(
        self,
        model: Any = None,
        *,
        output: Output | None = None,
        learns: bool | None = None,
        window: int = 1000,
        groups: Groups | None = None,
        missing: str | Mapping[Any, Any] = "absent",
        once_in: float | None = None,
        seed: int = 0,
    ) -> None:
        self.model = model
        if output is not None:
            check_choice("output", output, ("probabilities", "label", "number"))
        elif model is not None and model_kind(model) is not None:
            if model_kind(model) == "anomaly_detector":
                raise InvalidParameterError("model", "a classifier or a regressor, which predicts the label", model)
            output = resolve_loss(model, None).output
        self.output = output
        if learns is not None and not isinstance(learns, bool):
            raise InvalidParameterError("learns", "True, False or None", learns)
        self.learns = hasattr(model, "learn_one") if learns is None else learns
        if model is not None:
            model_function(model, output or "any")  # what cannot be asked is refused now, not when a shift is told
        self.window = check_integer("window", window, minimum=20)
        default = ONCE_IN_OF_LEARNERS if self.learns else ONCE_IN
        self.once_in = default if once_in is None else check_number("once_in", once_in, minimum=1e4, below=float("inf"))
        self.groups = check_groups(groups)
        self._are_names_known = not self.groups
        self.missing = check_missing(missing)
        self.seed = check_integer("seed", seed, minimum=0)
        self.n_observations = 0
        """Calls of `update`."""
        self._route = None if output is None else self._new_route(output)
        self._rows = None if model is None else KeptRows(self.window, self.seed)
        self._rows_after = 0
        """Observations before the first stored one."""
        self._beside: Beside | None = None
        """What compares the first observations with the hold-out."""
        self._is_label_known = False
        self._due: int | None = None
        self._guarded_since: int | None = None
        self._n_leaves: int | None = None
        self._split_at = 0
        """Number of the observation by which a tree has split for the last time."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Constructor parameters as plain data."""
        return {
            "output": self.output,
            "learns": self.learns,
            "window": self.window,
            "groups": {name: list(features) for name, features in self.groups.items()},
            "missing": self.missing,
            "once_in": self.once_in,
            "seed": self.seed,
        }

    def _new_route(self, output: Output) -> LossRoute | ReliabilityRoute:
        if output == "probabilities" and not self.learns:
            return ReliabilityRoute(self.once_in)
        return LossRoute(output, self.learns, self.once_in)

    @property
    def ready(self) -> bool:
        """Whether the reference is complete, so that shifts can be reported."""
        return self._route is not None and self._route.ready

    @property
    def guard(self) -> LossGuard:
        """The model's guard: since when it holds, or the count still missing.

        It also tells how small a harm is seen.
        """
        if self._route is None:
            return LossGuard(None, ("labelled observations", 0, N_FIRST), None)
        return LossGuard(self._guarded_since, self._route.waits_for, self._route.reach)

    @property
    def n_reference(self) -> int:
        """Observations that the latest ones are compared with."""
        return 0 if self._route is None else self._route.n_reference

    @property
    def shift(self) -> LossShift | None:
        """The shift that was told and is not over."""
        return None if self._route is None or self._route.open is None else self._route.open.shift

    @property
    def excess(self) -> Moved | None:
        """Excess of the reference and of the latest 1000 rows; None if none."""
        return None if self._route is None else self._route.excess()

    def update(self, x: Features | None, y: Any, y_pred: Any) -> list[LossEvent]:
        """Take in a labelled observation; return the events to report.

        Parameters
        ----------
        x
            May be None where there is no model to ask.
        y
            Label or target; None or NaN counts for nothing.
        y_pred
            Dict of label to probability, label, or number, by `output`.

        Raises
        ------
        InvalidParameterError
            `y_pred` is no dict where probabilities are read, or the first observation has no feature of a group.
        ProbabilityError
            Predicted probabilities are below 0, or do not sum to 1.
        LabelError
            The first label is of a type that no class of the prediction has, or the target is no number.
        """
        if x is not None and type(x) is not dict:
            x = as_row(x)
        if not self._are_names_known and x:
            check_groups_there(self.groups, x)
            self._are_names_known = True
        if self.output not in ("label", "number"):
            check_probabilities(y_pred)
        if not self._is_label_known and not is_missing(y):
            self._check_label(y, y_pred)
        self.n_observations += 1
        number = self.n_observations
        if self._route is None:
            if y_pred is None:
                return []
            self.output = _output_of(y_pred)
            self._route = self._new_route(self.output)
        if self.output == "probabilities" and y_pred is not None and not isinstance(y_pred, dict):
            raise InvalidParameterError(
                "y_pred", "a dict of label to probability, as in dict(zip(model.classes_, probabilities))", y_pred
            )
        if self._beside is not None:
            self._beside.update(x, y)
            self._beside = None if self._beside.is_done else self._beside
        if self.learns and number % _ASKED == 0:
            self._look_at_leaves(number)
        if x is not None and self._rows is not None:
            self._rows.update(x, y)
        events: list[LossEvent] = [self._begun(event) for event in self._route.update(y, y_pred, number)]
        if self._guarded_since is None and self._route.ready:
            self._guarded_since = number
        if self._due is not None and number >= self._due:
            events.append(self._explain(number))
        return events

    @classmethod
    def from_holdout(cls, model: Any, rows: Iterable[tuple[Features, Any]], **parameters: Any) -> Self:
        """Return a monitor whose reference is a hold-out of the model.

        The model is guarded from its first labelled observation on, if the rows are enough: 256 of them, 30 of which
        are of the rarer class, for one that gives probabilities.

        Parameters
        ----------
        model
            It does not learn, and has not learnt these rows: else its loss here is too small, and what comes looks
            worse.
        rows
            Pairs of features and label, in the order of time. Those without a label count for nothing.
        parameters
            As for `LossMonitor`.

        Raises
        ------
        InvalidParameterError
            The model learns, or there are fewer than 256 rows with a label and a prediction, or one class alone, or no
            row has a feature that the model knows.

        Warns
        -----
        HoldoutWarning
            Once, later: the first observation has features that the rows lack; or some class is surely more or less
            frequent among the first 256 to 4096 labels, as where its rows were resampled.

        Examples
        --------
        >>> import numpy as np
        >>> def model(x):
        ...     return {True: x["risk"], False: 1.0 - x["risk"]}
        >>> rng = np.random.default_rng(1)
        >>> holdout = [({"risk": p}, rng.random() < p) for p in rng.beta(1.0, 9.0, 2000).tolist()]
        >>> LossMonitor.from_holdout(model, holdout).guard.since
        1
        """
        monitor = cls(model, **{"learns": False, **parameters})
        monitor.take_holdout(rows)
        return monitor

    def take_holdout(self, rows: Iterable[tuple[Features, Any]]) -> None:
        """Make these rows the reference, before the first observation.

        As for `from_holdout`.
        """
        if self.learns or self.model is None:
            raise InvalidParameterError("holdout", "a model to be asked that does not learn: learns=False", self.model)
        function, taken = model_function(self.model, self.output or "any"), []
        for pair in rows:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InvalidParameterError("holdout", "pairs of features and label, as zip(rows, labels) gives", pair)
            x, y = pair
            row = read_missing(as_row(x), self.missing)
            if row is not None and not is_missing(y):
                taken.append((row, x, y))
        check_features(self.model, dict.fromkeys(name for row, _, _ in taken for name in row))
        if taken:
            show_row(function, taken[0][0])
        predictions = predict_rows(function, [row for row, _, _ in taken])
        usable = [(x, y, p) for (_, x, y), p in zip(taken, predictions, strict=True) if is_usable(p)]
        known = [(y, y_pred) for _, y, y_pred in usable]
        if len(known) < N_FIRST:
            raise InvalidParameterError("holdout", f"{N_FIRST} rows or more with a label and a prediction", len(known))
        labels, output = {y for y, _ in known}, self.output or _output_of(known[0][1])
        if output != "number":
            if len(labels) < 2:
                raise InvalidParameterError("holdout", "rows of two classes or more, and not one label", known[0][0])
            predicted = {label for _, y_pred in known for label in (y_pred if isinstance(y_pred, dict) else [y_pred])}
            if not labels & predicted:
                raise InvalidParameterError("holdout", f"labels as the model predicts: {[*predicted][:3]}", known[0][0])
        self.output, self._route = output, self._new_route(output)
        self._route.take_holdout(known)
        if self._rows is not None:
            for x, y, _ in usable:
                self._rows.update(x, y)
        self._rows_after = self.n_observations - len(known)
        self._beside = Beside.of([(x, y) for _, x, y in taken], is_number=output == "number")
        self._guarded_since = self.n_observations + 1 if self._route.ready else None

    def _check_label(self, y: Any, y_pred: Any) -> None:
        """Check whether the first label can be compared with predictions."""
        output = self.output or _output_of(y_pred)
        of_label = as_label(y_pred) if output == "label" else y_pred
        check_label(_LOSSES[output], y, of_label)
        self._is_label_known = is_usable(of_label)

    def __repr__(self) -> str:
        said = super().__repr__()
        if self.model is not None or "learns" in self._arguments_given():
            return said
        return f"{said[:-1]}{'' if said.endswith('()') else ', '}learns={self.learns})"  # what is assumed, nobody said

    def _facts(self) -> list[tuple[str, str]]:
        shift = "none" if self.shift is None else self.shift.sentence()
        return [
            *super()._facts(),
            ("the model learns", "yes" if self.learns else "no"),
            ("n_reference", figure(self.n_reference)),
            ("state", self.guard.sentence()),
            ("open shift", shift),
        ]

    def _begun(self, event: LossShift | LossShiftEnd) -> LossShift | LossShiftEnd:
        if not isinstance(event, LossShift):
            self._due = None
            if self._rows is not None:
                self._rows.end(returned=event.reason == "returned")
            return event
        event = replace(event, onset=event.onset.at_least(1))  # a hold-out has no observations
        self._due = max(event.observation, event.onset.high + self.window - 1)  # so that all rows are of the shift
        if self._rows is not None:
            self._rows.begin(event.onset.observation - self._rows_after)
        since = event.onset.observation if event.onset.low is None else event.onset.low
        is_sharp = event.onset.high - since <= 2 * _BEFORE  # some tree splits within any long time
        has_split = is_sharp and self._split_at >= since - _BEFORE and self._split_at > 0
        told = replace(event, due_at=self._due, has_split=has_split)
        assert self._route is not None
        assert self._route.open is not None
        self._route.open.shift = told
        return told

    def _look_at_leaves(self, number: int) -> None:
        n_leaves = getattr(final_step(self.model), "n_active_leaves", None)
        if n_leaves != self._n_leaves and self._n_leaves is not None:
            self._split_at = number
        self._n_leaves = n_leaves

    def _explain(self, number: int) -> LossShiftExplained:
        assert self._route is not None
        self._due = None
        shift = self._route.again()
        assert shift is not None
        if self._rows is None or self.output is None or not self._rows.n:
            return LossShiftExplained(shift, number, (), 0, 0)
        found = examine(
            self.model, self.output, shift, self._rows, number,
            groups=self.groups, missing=self.missing, seed=self.seed,
        )  # fmt: skip
        assert self._route.open is not None
        self._route.open.shift = found.shift
        return found

    def restart(self) -> LossShiftEnd | None:
        """Start anew for another model version; return the open shift's end."""
        shift = self.shift
        self._due, self._n_leaves, self._split_at, self._guarded_since = None, None, 0, None
        self._beside = None
        if self._rows is not None:
            self._rows, self._rows_after = KeptRows(self.window, self.seed), self.n_observations
        self._route = None if self.output is None else self._new_route(self.output)
        return None if shift is None else LossShiftEnd(shift, "replaced", self.n_observations, shift.loss)

    def know_names(self) -> None:
        """Accept a first observation that lacks features named in `groups`."""
        self._are_names_known = True

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from: numbers, text, bytes, lists, dicts."""
        return {"format": _FORMAT, "parameters": self.parameters, "state": attributes(self, _STATE)}

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, model: Any = None) -> Self:
        """Return the monitor of a snapshot, which continues bit for bit.

        Raises
        ------
        SnapshotError
            It is of another format.
        """
        _check_format(snapshot)
        monitor = cls(model, **snapshot["parameters"])
        monitor.restore(snapshot)
        return monitor

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state of a snapshot of a monitor with equal parameters.

        Raises
        ------
        SnapshotError
            It is of another format.
        """
        _check_format(snapshot)
        self.output = snapshot["parameters"]["output"]  # where it was left open, the first prediction has said it
        rows = self._rows
        set_attributes(self, snapshot["state"])
        if rows is None or self._rows is None:  # one of the two has no model to ask
            self._rows = rows
        self.know_names()
        self._is_label_known = self.n_observations > 0


def _check_format(snapshot: Snapshot) -> None:
    if not isinstance(snapshot, dict) or snapshot.get("format") != _FORMAT:
        raise SnapshotError(f"this is no snapshot of LossMonitor in format {_FORMAT}: begin without it")


def _output_of(y_pred: Any) -> Output:
    if isinstance(y_pred, dict):
        return "probabilities"
    return "number" if isinstance(y_pred, float) else "label"

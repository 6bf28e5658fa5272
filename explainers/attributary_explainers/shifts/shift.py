"""The route `importance`: tells lasting shifts on streams without an end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.shifts import LAST, MEAN, SKIPPED, SLACK
from ..errors import SnapshotError
from ..notebook.cards import Card, figure
from ..notebook.described import Described
from ..snapshots import attributes, set_attributes
from ..typing import Array, Importance, Snapshot
from ..validation import check_integer, check_number
from .blocks import BLOCK, FIRST, Blocks, Rows
from .events import Shift, ShiftEnd
from .reference import Reference, estimate
from .watch import Watch, level_around

_FORMAT = 2
_STATE = ("shift", "_slack_before", "_total_before", "_blocks", "_rows", "_watch", "_n_blocks")


class ImportanceShift(Described):
    """Tells lasting shifts of the importance that increments add up to.

    The mean increments of the first 5120 observations are the reference, over all features and groups. It grows to
    10 240, 20 480 and 40 960 observations, and is used from when a change of a tenth of the total importance can be
    told; the largest is used in any case, and `least_change` says what can be told. Where its parts differ by more than
    noise, as while a model learns, the older half goes, and it grows again. What comes is compared with the reference
    block by block of 128 observations. A shift is told once. Then a new reference is taken, and when its parts agree
    the shift's end is told: the importance is back where it was, or stays where it is now.

    **Promise.** At most one false shift per `once_in` observations is told on average, over all features and over all
    explainers that share the promise, however long the stream is, as long as what makes observations depend on each
    other lasts for at most a fifteenth of the reference. Longer regimes are told as the changes that they are.

    Parameters
    ----------
    n_explainers
        Valid range >= 1. Explainers, or routes, of the model that share the promise: each gets an equal part of it.
    once_in
        Valid range >= 10 000. Observations per false shift that may be told, over all these explainers.
        Larger tells less and later, by the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> shift = ImportanceShift()
    >>> for t in range(10_000):
    ...     increments = rng.normal([2.0 if t < 8000 else 1.0, 1.0], 2.0)
    ...     if (event := shift.update(("age", "salary"), increments)) is not None:
    ...         print(type(event).__name__, event.feature, event.direction, event.n_observations)
    Shift age down 9088
    """

    def __init__(self, *, n_explainers: int = 1, once_in: float = 1e6) -> None:
        self.n_explainers = check_integer("n_explainers", n_explainers, minimum=1)
        self.once_in = check_number("once_in", once_in, minimum=10_000.0, below=float("inf"))
        self.shift: Shift | None = None
        """The shift that was told and has not ended."""
        self._slack_before = 0.0
        self._total_before = 0.0
        self._blocks = Blocks()
        self._rows: Rows | None = Rows()  # None where the reference does not grow any more
        self._watch: Watch | None = None
        self._n_blocks = 0

    def update(self, names: tuple[Any, ...], increments: Array, number: int | None = None) -> Shift | ShiftEnd | None:
        """Take in an observation's increments; return the event to tell, if any.

        Parameters
        ----------
        names
            Features and groups. One that is not among them has the increment 0, as one not seen so far had.
        increments
            Shape (names,), in the same order: by how much the loss is worse without each, as `IncrementalPFI` and
            `IncrementalSAGE` smooth them, before they are smoothed. With one that is NaN, infinite or beyond 1e150 the
            observation counts for nothing.
        number
            The observation's number in the stream, larger than that of the one before; None counts the calls.
        """
        means = self._blocks.update(names, increments, self.n_observations + 1 if number is None else number)
        return None if means is None else self._end_block(means)

    def restart(self) -> ShiftEnd | None:
        """Begin a new reference for another model; return an open shift's end."""
        shift = self.shift
        self.shift = self._watch = None
        self._rows = Rows()
        self._blocks.clear()
        if shift is None:
            return None
        return ShiftEnd(shift, "replaced", shift.after, shift.share, self.n_observations, n_reference=0)

    @property
    def n_observations(self) -> int:
        """Number of the last observation."""
        return int(self._blocks.counts[LAST])

    @property
    def n_skipped(self) -> int:
        """Observations that count for nothing, as an increment was not finite."""
        return int(self._blocks.counts[SKIPPED])

    @property
    def ready(self) -> bool:
        """Whether there is a reference, and shifts are told."""
        return self._watch is not None

    @property
    def precise(self) -> bool:
        """Whether it can tell a change of a tenth of the total, for every feature."""
        return self._watch is not None and self._watch.reference.precise

    @property
    def is_growing(self) -> bool:
        """Whether a first or larger reference is being taken."""
        return self._rows is not None

    @property
    def n_reference(self) -> int:
        """Observations that the reference is made of; 0 where there is none yet."""
        return 0 if self._watch is None else self._watch.reference.n

    @property
    def period(self) -> float | None:
        """Observations in a season; None where no season was found."""
        return None if self._watch is None else self._watch.reference.period

    @property
    def reference(self) -> Importance:
        """The importance to compare with; empty before there is a reference."""
        return {} if self._watch is None else self._by_name(self._watch.reference.table[MEAN])

    @property
    def least_change(self) -> Importance:
        """Least change it can tell, per feature, as a share of the total.

        Empty before a reference. It is twice the slack: half of it is never told, as it may be the error of the
        reference; all of it is told in finite time; and three times as much within some thousand observations.
        """
        if self._watch is None:
            return {}
        reference = self._watch.reference
        return self._by_name(2.0 * reference.table[SLACK] / reference.total)

    @property
    def level(self) -> float:
        """Observations per false alarm at today's evidence, over all explainers."""
        return 0.0 if self._watch is None else self._watch.level / self.n_explainers

    def _card(self) -> Card:
        state = "shifts are told" if self.ready else "no reference yet"
        facts = [*self._facts(), ("n_reference", figure(self.n_reference)), ("state", state)]
        if self.shift is not None:
            facts.append(("open shift", f"{self.shift.feature} {self.shift.direction}"))
        least = self.least_change
        rows = [[str(name), figure(value), figure(least[name])] for name, value in self.reference.items()]
        return Card(repr(self), facts=facts, columns=("feature", "reference", "least change that is told"), rows=rows)

    def _by_name(self, values: Array) -> Importance:
        return dict(zip(self._blocks.names, values.tolist(), strict=False))

    def _end_block(self, means: Array) -> Shift | ShiftEnd | None:
        """Take in a block's means, shape (features,); return any event."""
        watch, rows = self._watch, self._rows
        if watch is not None and watch.update(means, self.n_observations + 1):
            return self._tell(watch)
        end = self._refer(rows) if rows is not None and rows.add(means) else None
        self._n_blocks = (self._n_blocks + 1) % FIRST
        if self._n_blocks == 0:
            self._forget()
        return end

    def _tell(self, watch: Watch) -> Shift:
        told = watch.shift(self._blocks.names, self.n_observations, self.n_explainers)
        reference = watch.reference
        self._slack_before = float(reference.table[SLACK, self._blocks.names.index(told.feature)])
        self._total_before = reference.total
        self.restart()
        self.shift = told
        return told

    def _refer(self, rows: Rows) -> ShiftEnd | None:
        """Take the reference of the rows, if it can be used, and let them grow."""
        if self._watch is not None and self._watch.in_doubt:
            self._rows = Rows()  # a shift may have begun: what came since must not go into the reference
            return None
        found, is_last = estimate(rows.values, BLOCK, self.n_explainers), rows.are_most
        if (found is None or not found.settled) and len(rows.values) > FIRST:
            rows.halve()
            found, is_last = estimate(rows.values, BLOCK, self.n_explainers), False
        rows.grow()
        if found is None or not found.settled:
            return None
        if found.precise or is_last:
            self._watch = Watch(found, BLOCK, self.once_in * self.n_explainers, self.n_observations + 1)
        if is_last:
            self._rows = None
        return None if self.shift is None else self._end(self.shift, found)

    def _end(self, shift: Shift, reference: Reference) -> ShiftEnd:
        column = self._blocks.column(shift.feature)
        value = half_width = slack = 0.0
        if column is not None:
            value, half_width = float(reference.table[MEAN, column]), float(reference.half_widths[column])
            slack = float(reference.table[SLACK, column])
        left = value - shift.before.value
        self.shift = None
        return ShiftEnd(
            shift=shift,
            kind="released" if abs(left) <= self._slack_before + slack else "referenced",
            now=level_around(value, half_width),
            share=left / self._total_before,
            n_observations=self.n_observations,
            n_reference=reference.n,
        )

    def _forget(self) -> None:
        """Forget names that are long unseen and that no reference holds."""
        kept = self._blocks.unseen_for() < FIRST * BLOCK
        if self._watch is not None:
            kept[: self._watch.n_known] = True
        if kept.all():
            return
        columns = np.flatnonzero(kept)
        for part in (self._blocks, self._rows, self._watch):
            if part is not None:
                part.keep(columns)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        promise = {"n_explainers": self.n_explainers, "once_in": self.once_in}
        return {"format": _FORMAT, **promise, "state": attributes(self, _STATE)}

    def restore(self, snapshot: Snapshot) -> None:
        """Continue where the snapshot was taken, bit for bit.

        Raises
        ------
        SnapshotError
            It is of another format, or of another promise.
        """
        if snapshot.get("format") != _FORMAT:
            raise SnapshotError(f"this is no snapshot of ImportanceShift in format {_FORMAT}: begin without it")
        promise = snapshot["n_explainers"], snapshot["once_in"]
        if promise != (self.n_explainers, self.once_in):
            raise SnapshotError(
                f"the snapshot's promise (n_explainers, once_in) is {promise}, and this one's "
                f"{(self.n_explainers, self.once_in)}: make ImportanceShift with the former, or begin without it"
            )
        set_attributes(self, snapshot["state"])

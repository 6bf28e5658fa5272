"""State of a change explainer, and its storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from ..batch.slices import Slice, Sliced, Steps
from ..incremental.base import SNAPSHOT_FORMAT
from ..losses.losses import Loss
from ..pickling import dump_model, freeze, load_model
from ..snapshots import Stored, attributes, plain, register, set_attributes
from ..typing import Snapshot
from .discrepancy import Distance
from .events import ChangeEvent, ChangeExplanation, NotConfirmed
from .holdout import HeldOut
from .importance import ImportanceChange
from .measure import Measure
from .rows import HeldRows, Row, arrays
from .verdicts import Course, Losses, Onset, losses_of
from .watch import SignalWatch

_STATE = (
    *("_rng", "_course", "_reference", "_examined", "_matured", "_deployed", "_half", "_before_course", "_born"),
    *("_next_check", "_quiet_until", "_detector_quiet_until", "_n_dismissed", "_matured_at_age", "_is_degraded"),
    *("_discrepancy", "n_observations", "n_not_confirmed", "n_skipped", "n_alarms", "n_explained", "_pending"),
)

SLICE = 256
"""Rows that models are asked about with one observation, at least."""

_PART = 4
"""An explanation takes a window over this part at most: where there are many features, slices are larger."""


@register
class Frozen:
    """Holds an unchanging copy of a model, and turns it into bytes once."""

    def __init__(self, model: Any, data: bytes | None = None) -> None:
        self.model, self._bytes = model, data

    @classmethod
    def of(cls, model: Any) -> Self:
        """Copy a model."""
        return cls(freeze(model))

    def snapshot(self) -> bytes:
        """Return the model's bytes."""
        if self._bytes is None:
            self._bytes = dump_model(self.model)
        return self._bytes

    @classmethod
    def from_snapshot(cls, snapshot: bytes) -> Self:
        """Restore a frozen model from its bytes."""
        return cls(load_model(snapshot), snapshot)


@dataclass
class Reference(Stored):
    """Frozen model with which the present model is compared.

    It was taken after observation `n`, which is `at` on the clock of `HeldOut`.
    """

    model: Frozen
    n: int
    at: int
    version: str | None


@dataclass
class Examined(Stored):
    """Holds an open alarm.

    It was raised at observation `n`, which is `at` on the clock, on which the verdict is `due`. It `is_muted` where it
    was not told, because it may be part of a pattern that was; `is_doubt` is the second look at a model that looked
    worse. `path` has the losses of the reference before the alarm, with the numbers of their observations: in them the
    onset is looked for. `copy` is the model in the middle of the first window, at observation `copy_n`, which has not
    learnt what follows.
    """

    route: str
    n: int
    at: int
    due: int
    is_muted: bool
    discrepancy: tuple[float, int]
    is_doubt: bool = False
    copy: Frozen | None = None
    copy_n: int = 0
    onset: Onset | None = None
    path: list[tuple[int, float]] = field(default_factory=list)


@dataclass
class Matured(Stored):
    """A matured model that waits for fresh observations to be measured on."""

    old: Frozen
    n: int
    due: int
    reference_n: int
    version_before: str | None
    losses: Losses
    discrepancy: tuple[float, int]


@dataclass
class Deployed(Stored):
    """The old of two versions, until fresh observations compare them.

    The new one is the reference. `n` is the last observation before the new version.
    """

    old: Frozen
    n: int
    due: int
    version_before: str | None


@dataclass
class Told(Stored):
    """The part of an event that is known before its importances.

    Discrepancy and losses of two versions are found with the importances.
    """

    route: str
    n_detected: int
    reference_n: int
    version_before: str | None
    version: str | None
    discrepancy: tuple[float, int] = (0.0, 0)
    verdict: str | None = None
    closes: int | None = None
    losses: Losses | None = None
    onset: Onset | None = None
    pattern: str | None = None


class Found(NamedTuple):
    """Importance changes found by method, or the reason for having none.

    Losses and discrepancy are as they were; of two versions, None and 0 where they predict nothing in common.
    """

    losses: Losses | None
    discrepancy: tuple[float, int]
    importances: dict[str, ImportanceChange]
    failure: str | None


@dataclass
class Pending(Stored):
    """Holds an explanation that is under way.

    Models and observations are as they were when the change was noticed. `rows` are of both models; where `before` is
    not None, that is of the old one. With each observation of the stream, `size` rows are asked about.
    """

    told: Told
    old: Frozen
    new: Frozen
    rows: HeldRows
    before: HeldRows | None
    seed: int
    size: int
    answers: list[Any] = field(default_factory=list)
    """Of the slices that were done before the state was stored."""
    work: Sliced[Found] = field(init=False)

    _unstored = ("work",)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return {**super().snapshot(), "answers": plain(self.work.answers)}


class ChangeState:
    """The parameters, counts, reference and open work of a ChangeExplainer.

    Explanations under way go on one after the other, in the order in which they began.
    """

    name = "change"

    model: Any
    version: str | None
    window: int
    threshold: float
    scale: str
    margin: float
    watch_discrepancy: bool
    distance: Distance
    n_observations: int
    n_not_confirmed: int
    n_skipped: int
    """Observations that nothing was made of: no prediction, or a loss that is NaN or infinite."""
    n_alarms: Counter[str]
    n_explained: Counter[str]
    _measure: Measure
    _rng: np.random.Generator
    _watch: SignalWatch
    _held: HeldOut
    _course: Course
    _pending: list[Pending]

    def _forget(self) -> None:
        """Begin anew with a model: no reference, nothing open."""
        self._reference: Reference | None = None
        self._examined: Examined | None = None
        self._matured: Matured | None = None
        self._deployed: Deployed | None = None
        self._half: Frozen | None = None
        self._before_course: Frozen | None = None
        self._discrepancy = (0.0, 0)
        self._born = self._held.n_rows
        self._next_check = 0
        self._quiet_until = self._detector_quiet_until = self._n_dismissed = 0
        self._matured_at_age: int | None = None
        self._is_degraded = False
        self._held.compare_with(None)

    @property
    def loss(self) -> Loss:
        """The loss of the importances."""
        return self._measure.loss

    @property
    def loss_of_verdicts(self) -> Loss:
        """The loss that verdicts rest on."""
        return self._held.loss

    @property
    def detector_name(self) -> str | None:
        """Name of the drift detector, or None."""
        return self._watch.name

    @property
    def discrepancy(self) -> float | None:
        """Discrepancy of a window, at most a tenth of it old; None if unknown."""
        return self._discrepancy[0] if self._discrepancy[1] else None

    @property
    def n_discrepancy(self) -> int:
        """Observations in `discrepancy`."""
        return self._discrepancy[1]

    @property
    def reference_observation(self) -> int | None:
        """Observation after which the reference was taken, its name, or None."""
        return self._reference.n if self._reference else None

    @property
    def is_examining(self) -> bool:
        """Whether an alarm that was told is open, but for that of a version."""
        is_open = self._examined is not None and not self._examined.is_muted
        return is_open or any(p.told.verdict and p.told.closes is not None for p in self._pending)

    @property
    def pattern(self) -> str | None:
        """The told pattern that goes on, `trend` or `recurring`, or None."""
        return self._course.pattern if self._course.is_told(self._held.n_rows) else None

    def _losses(self, rows: Sequence[Row], later: Sequence[Row], then: Sequence[float] | None = None) -> Losses:
        then = self._held.then if then is None else then
        return losses_of(self._held.loss, then, arrays(rows)[0], arrays(later)[1])

    def _about(
        self, route: str, detected: int, reference: int, before: str | None, discrepancy: tuple[float, int]
    ) -> dict[str, Any]:
        """Return the fields shared by all events."""
        return {
            "route": route,
            "n_observations": self.n_observations,
            "n_detected": detected,
            "reference_observation": reference,
            "detector": self._watch.name,
            "detector_params": dict(self._watch.params),
            "signal": "score" if self._watch.signal == "loss" and self._held.loss.is_score else self._watch.signal,
            "one_sided": self._watch.one_sided,
            "window": self.window,
            "discrepancy": discrepancy[0],
            "threshold": self.threshold,
            "n_discrepancy": discrepancy[1],
            "distance": self.distance.name,
            "scale": self.scale,
            "version_before": before,
            "version": self.version,
        }

    @property
    def _the_reference(self) -> Frozen:
        assert self._reference is not None
        return self._reference.model

    @property
    def _version_of_reference(self) -> str | None:
        return self._reference.version if self._reference else None

    def _refer(self, model: Frozen, n: int | None = None, rows: Sequence[Row] = ()) -> None:
        """Take a reference; `rows` are observations that it has not learnt either."""
        now = self._held.n_rows
        self._reference = Reference(model, self.n_observations if n is None else n, now - len(rows), self.version)
        self._half, self._next_check = None, now + self.window
        self._n_dismissed = self._quiet_until = self._detector_quiet_until = 0
        self._is_degraded, self._discrepancy = False, (0.0, 0)
        self._held.compare_with(model.model, rows)
        if self._held.is_born_known and not self._watch.has_unit:
            self._watch.set_unit(self._held.birth, provisional=True)

    def _seed(self) -> int:
        return int(self._rng.integers(2**31))

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments as plain data."""
        return {
            "window": self.window,
            "threshold": self.threshold,
            "discrepancy": self.scale,
            "distance": self.distance.name,
            "watch_discrepancy": self.watch_discrepancy,
            "detector": self._watch.name,
            "detector_params": dict(self._watch.params),
            "one_sided": self._watch.one_sided,
            "signal": self._watch.signal,
            "margin": self.margin,
            "batch_size": self._held.batch_size,
            **self._measure.parameters,
        }

    def finish(self) -> tuple[ChangeEvent, ...]:
        """Finish the explanations under way at once; return their events.

        For the end of a stream: `update` does a part of them with each observation.
        """
        events: list[ChangeEvent] = []
        while self._pending:
            events += self._go_on(np.inf)
        return tuple(events)

    def _explain(
        self, told: Told, old: Frozen, new: Frozen, rows: Sequence[Row], before: Sequence[Row] | None = None
    ) -> None:
        """Begin to explain a change; nothing is asked yet."""
        then = rows if before is None else before
        d = len(self._measure.groups) + len(rows[0].x) if rows else 0
        total = self._measure.n_rows(len(rows), d) + self._measure.n_rows(len(then), d)
        if told.route == "version":
            total += 2 * len(rows)
        size = max(SLICE, -(-total // max(self.window // _PART, 1)))
        kept = None if before is None else HeldRows(before)
        self._pending.append(self._begun(Pending(told, old, new, HeldRows(rows), kept, self._seed(), size)))

    def _begun(self, pending: Pending) -> Pending:
        pending.work = Sliced(partial(self._steps, pending), pending.answers)
        return pending

    def _go_on(self, n: float | None = None) -> list[ChangeEvent]:
        """Ask for the next (or `n`) rows of an explanation; return its events."""
        if not self._pending:
            return []
        pending = self._pending[0]
        try:
            is_done = pending.work.go_on(pending.size if n is None else n)
        except Exception:
            del self._pending[0]
            raise
        if not is_done:
            return []
        del self._pending[0]
        return self._tell(pending.told, pending.work.result)

    def _steps(self, pending: Pending) -> Steps[Found]:
        """Compute the findings of a pending explanation, step by step."""
        told, size = pending.told, pending.size
        rows: Sequence[Row] = pending.rows
        old, new = pending.old.model, pending.new.model
        losses, discrepancy, margin = told.losses, told.discrepancy, 0.0
        if told.route == "version":
            apart, n = [np.empty((0, 3))], max(size // 2, 1)
            for start in range(0, len(rows), n):
                some = rows[start : start + n]
                apart.append((yield Slice(2 * len(some), partial(self._held.apart, old, new, some))))
            of = np.concatenate(apart)
            is_known = np.isfinite(of[:, 0])
            if is_known.sum() < 2:
                return Found(None, (0.0, 0), {}, None)
            rows, of = [row for row, known in zip(rows, is_known, strict=True) if known], of[is_known]
            losses = losses_of(self._held.loss, None, of[:, 0], arrays(rows)[0])
            distances, predicted = of[:, 1].tolist(), of[:, 2].tolist()
            discrepancy, margin = (self._held.discrepancy_of(rows, distances, predicted), len(rows)), self.margin
        now = [(row.x, row.y) for row in rows]
        then = None if pending.before is None else [(row.x, row.y) for row in pending.before]
        try:
            importances = yield from self._measure.compare_steps(
                old, new, now, pending.seed, before=then, margin=margin, size=size
            )
        except Exception as error:  # noqa: BLE001 - a verdict is told even where a model fails on mixed rows
            return Found(losses, discrepancy, {}, f"{type(error).__name__}: {error}")
        return Found(losses, discrepancy, importances, None)

    def _tell(self, told: Told, found: Found) -> list[ChangeEvent]:
        of = self._about(told.route, told.n_detected, told.reference_n, told.version_before, found.discrepancy)
        of["version"] = told.version
        if found.losses is None:
            assert told.closes is not None
            self.n_not_confirmed += 1
            return [NotConfirmed(**of, closes=told.closes, found=None)]
        importances = found.importances
        if told.verdict == "matured" and importances and not any(c.significant() for c in importances.values()):
            return []
        self.n_explained[told.verdict or "version"] += 1
        return [
            ChangeExplanation(
                **of,
                verdict=told.verdict,
                closes=told.closes,
                losses=found.losses,
                onset=told.onset,
                pattern=told.pattern,
                importances=importances,
                failure=found.failure,
            )
        ]

    def snapshot(self) -> Snapshot:
        """Return all but the present model; frozen ones and detector as bytes."""
        return {
            "format": SNAPSHOT_FORMAT,
            "explainer": self.name,
            "parameters": self.parameters,
            "version": self.version,
            "watch": self._watch.snapshot(),
            "held": self._held.snapshot(),
            "state": attributes(self, _STATE),
        }

    def _restore(self, snapshot: Snapshot) -> None:
        self._watch.restore(snapshot["watch"])
        set_attributes(self, snapshot["state"])
        reference = None if self._reference is None else self._reference.model
        self._held.restore(snapshot["held"], reference and reference.model)
        for pending in self._pending:
            for name in ("old", "new"):
                if reference is not None and getattr(pending, name).snapshot() == reference.snapshot():
                    setattr(pending, name, reference)  # a model is in memory once
            self._begun(pending)

"""Explanations that are under way: a slice with each observation, so that none of them takes long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..batch.slices import Slice, Sliced, Steps
from ..typing import Snapshot
from .events import ChangeEvent, ChangeExplanation, NotConfirmed
from .holdout.answers import answer_from, plain_answer
from .holdout.frozen import Frozen
from .holdout.rows import HeldRows, Row, arrays
from .importance import ImportanceChange
from .judging.verdict import Losses, losses_of
from .records import Told, plain, restored
from .state import ChangeState

SLICE = 256
"""Rows that models are asked about with one observation, at least."""

_PART = 4
"""An explanation takes a window over this part at most: where there are many features, slices are larger."""


class Found(NamedTuple):
    """Holds what an explanation finds: by method the change, or why not.

    Losses and discrepancy are as they were; of two versions, None and 0 where they predict nothing in common.
    """

    losses: Losses | None
    discrepancy: tuple[float, int]
    importances: dict[str, ImportanceChange]
    failure: str | None


@dataclass
class Pending:
    """Holds an explanation that is under way.

    Models and observations are as they were when the change was noticed. `rows` are of both models; where `before` is
    not None, that is of the old one. With each observation of the stream, `size` rows are asked about.
    """

    told: Told
    old: Frozen
    new: Frozen
    rows: Sequence[Row]
    before: Sequence[Row] | None
    seed: int
    size: int
    work: Sliced[Found] = field(init=False)


class Explaining(ChangeState):
    """Looks after explanations that are under way, the one that was begun first before all others."""

    _pending: list[Pending]

    @property
    def is_examining(self) -> bool:
        """Whether an alarm that was told is open, but for that of a version."""
        return super().is_examining or any(p.told.verdict and p.told.closes is not None for p in self._pending)

    def finish(self) -> tuple[ChangeEvent, ...]:
        """Do at once what is left of the explanations under way; return what they tell.

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
        self._begin(Pending(told, old, new, rows, before, self._seed(), size))

    def _begin(self, pending: Pending, answers: Sequence[Any] = ()) -> None:
        pending.work = Sliced(partial(self._steps, pending), answers)
        self._pending.append(pending)

    def _go_on(self, n: float | None = None) -> list[ChangeEvent]:
        """Ask the models of the first explanation about its next rows, or about `n`; return what it tells."""
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
        """Find out what an explanation tells."""
        told, rows, size = pending.told, pending.rows, pending.size
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
        """Return everything but the current model; frozen models and the detector as the bytes of `dump_model`."""
        return {**super().snapshot(), "pending": [self._plain(pending) for pending in self._pending]}

    def _plain(self, pending: Pending) -> Snapshot:
        return {
            "told": plain(pending.told),
            "old": self._bytes_of(pending.old),
            "new": self._bytes_of(pending.new),
            "rows": HeldRows(pending.rows).snapshot(),
            "before": None if pending.before is None else HeldRows(pending.before).snapshot(),
            "seed": pending.seed,
            "size": pending.size,
            "answers": [plain_answer(answer) for answer in pending.work.answers],
        }

    def _bytes_of(self, frozen: Frozen) -> bytes | None:
        """Return a model's bytes, None for the reference, whose bytes are stored already."""
        return None if self._reference is not None and frozen is self._reference.model else frozen.dump()

    def _restore(self, snapshot: Snapshot) -> None:
        super()._restore(snapshot)
        self._pending = []
        for one in snapshot["pending"]:
            rows = list(HeldRows.from_snapshot(one["rows"]))
            before = None if one["before"] is None else list(HeldRows.from_snapshot(one["before"]))
            told, old, new = restored(Told, one["told"]), self._frozen_of(one["old"]), self._frozen_of(one["new"])
            pending = Pending(told, old, new, rows, before, one["seed"], one["size"])
            self._begin(pending, [answer_from(answer) for answer in one["answers"]])

    def _frozen_of(self, stored: bytes | None) -> Frozen:
        return Frozen.load(stored) or self._the_reference

"""Makes the guard of a model's loss as statuses have it."""

from __future__ import annotations

from attributary_topics import Awaited, ModelGuard, Reach

from ...loss_shift.guard import LossGuard
from .events import finite


def told_guard(guard: LossGuard) -> ModelGuard:
    """Return a guard as statuses have it."""
    waits_for, reach = guard.waits_for, guard.reach
    return ModelGuard(
        guard.since,
        None if waits_for is None else Awaited(*waits_for),
        None if reach is None else Reach(finite(reach.before), finite(reach.after), reach.n, reach.unit),
        guard.sentence(),
    )

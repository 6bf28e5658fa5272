"""View of a model's dead letters: counts by reason, without values."""

from __future__ import annotations

from collections.abc import Iterable

from ...config.settings import Config
from ..answers.models import DeadLetters, ReasonCount
from ..store.rows import StoredReason
from ..store.store import Store
from .choosing import model_of


def dead_letters(
    store: Store, config: Config, model_id: str, *, start_ms: int | None = None, end_ms: int | None = None
) -> DeadLetters:
    """Return the counts between two moments, the most frequent reason first.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    found = store.dead_letters(model_id, start_ms=start_ms, end_ms=end_ms)
    if not found:
        model_of(store, config, model_id)
    return DeadLetters(model_id=model_id, n=sum(one.n for one in found), reasons=reasons(found))


def reasons(found: Iterable[StoredReason]) -> list[ReasonCount]:
    """Return counts by reason and stage, the most frequent first."""
    ordered = sorted(found, key=lambda one: (-one.n, one.reason, one.stage))
    return [
        ReasonCount(reason=one.reason, stage=one.stage, n=one.n, first_ms=one.first_ms, last_ms=one.last_ms)
        for one in ordered
    ]

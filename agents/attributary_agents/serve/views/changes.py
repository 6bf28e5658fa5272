"""Answers which changes there are, and what one of them tells."""

from __future__ import annotations

from collections.abc import Collection

from ...config.settings import Config
from ..answers.base import PairOfMoments
from ..answers.changes import ChangeList, ChangeRow, ChangeView
from ..store.change_rows import change_row
from ..store.rows import StoredChange
from ..store.store import Store
from .choosing import model_of
from .comparisons import around
from .errors import NotFoundError
from .words import name

MOST = 500
"""Changes of a list at most."""

TOLD = (
    "alarm",
    "explanation",
    "importance_shift",
    "importance_shift_released",
    "loss_shift",
    "loss_shift_explained",
    "loss_shift_released",
    "recovered",
)
"""Events of the list of the fleet: all but alarms that were not confirmed."""

_LOOKED_AT = 20
"""Times as many changes are looked through as are listed, since alarms that are closed are left out."""


def row_of(change: StoredChange) -> ChangeRow:
    """Return the row of a change."""
    return ChangeRow(**change_row(change))


def changes(
    store: Store,
    config: Config,
    model_id: str | None = None,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
    events: Collection[str] = (),
    last: int = 100,
) -> ChangeList:
    """Return the changes of a model, or of all, the newest first.

    Parameters
    ----------
    start_ms, end_ms
        Between which moments; None: from the first, to the last.
    events
        Kinds that are listed; empty: all, alarms that were not confirmed among them.
    last
        How many are listed at most.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    if model_id is not None:
        model_of(store, config, model_id)
    last = min(max(last, 0), MOST)
    found = store.changes(model_id, start_ms=start_ms, end_ms=end_ms, events=events, last=last)
    n = store.n_changes(model_id, start_ms=start_ms, end_ms=end_ms, events=events)
    return ChangeList(changes=[row_of(change) for change in found], n=n)


def recent_rows(store: Store, most: int) -> list[ChangeRow]:
    """Return the last changes of the fleet, without alarms of which it is known what they were."""
    found = store.changes(events=TOLD, last=most * _LOOKED_AT)
    return [row_of(change) for change in found if change.event.get("event") != "alarm" or change.is_open][:most]


def change(store: Store, change_id: str) -> ChangeView:
    """Return one change: the event, and all that belongs to it.

    Raises
    ------
    NotFoundError
        There is none of this id.
    """
    found = store.change(change_id)
    if found is None:
        raise NotFoundError(
            "No such change",
            f"No change '{name(change_id)}'. It may be older than what is kept (serve.max_age), or not read yet.",
        )
    chain = store.chain(change_id) or [found]
    compared = around(chain)
    return ChangeView(
        row=row_of(found),
        event=dict(found.event),
        chain=[row_of(one) for one in chain],
        events=[dict(one.event) for one in chain],
        compare=None if compared is None else PairOfMoments(a=str(compared[0]), b=str(compared[1])),
    )

"""Validation rows as the reference of a model's watches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from attributary_topics.errors import without_text

from ..losses.labels import check_positive
from ..missing import is_missing
from ..models.known import classes_of
from .state import Watched

logger = logging.getLogger(__name__)

_EXPLAINED = 1000
"""Rows of a hold-out that are explained at most, spread over all of them: more would take a slow model minutes."""

Shown = Callable[[str, int, int], None]
"""`(model_id, n, total)`: so many of the rows of the model's hold-out are explained."""

_shown: ContextVar[Shown | None] = ContextVar("shown", default=None)


@contextmanager
def holdouts_shown(shown: Shown) -> Iterator[None]:
    """Call a function with each row of a hold-out that is explained."""
    before = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(before)


def take_holdout(state: Watched) -> None:
    """Show a model's watches its hold-out, before its first observation.

    The watch of the loss compares with it from then on; the explainers have explained a thousand of its rows, and the
    shifts of their importances begin with these.

    ExplainerError: the watch refuses it, or the model has no prediction for it.
    """
    holdout, watch = state.settings.holdout, state.loss_watch
    if holdout is None or watch is None or not watch.is_new:
        return
    take_reference(state)
    if any(explainer.n_observations for explainer in state.explainers.values()):
        return
    labelled, shown = [row for row in holdout.rows if not is_missing(row[1])], _shown.get()
    n = len(labelled)
    labelled = [labelled[i * n // _EXPLAINED] for i in range(_EXPLAINED)] if n > _EXPLAINED else labelled
    if shown is None:
        logger.info(
            "model %s: %d rows of its hold-out of %d are explained before its first observation",
            state.model_id,
            len(labelled),
            n,
        )
    for i, (x, y) in enumerate(labelled, start=1):
        state.together.predict(x, explain=True)
        known = {name: explainer.n_observations for name, explainer in state.explainers.items()}
        state.together.explain(y, wanted=False)
        for name, n_before in known.items():
            if state.explainers[name].n_observations > n_before:
                state.shifts[name].update(*state.explainers[name].latest_increments, 0)
        if shown is not None:
            shown(state.model_id, i, len(labelled))
    for shifts in state.shifts.values():
        if shifts.shift is not None:  # what shifts within the hold-out is no news
            shifts.restart()


def take_reference(state: Watched) -> None:
    """Make the hold-out the reference of the loss's watch alone.

    ExplainerError: the watch refuses it, or the positive class is no label of it.
    """
    holdout, watch = state.settings.holdout, state.loss_watch
    if holdout is None or watch is None:
        return
    watch.monitor.take_holdout(holdout.rows)
    if state.loss.output != "number":
        labels = {y for _, y in holdout.rows if not is_missing(y)}
        check_positive(state.settings.positive, labels.union(classes_of(state.together.model)))


def take_holdout_or_warn(state: Watched) -> None:
    """Show the watches the hold-out; without it, if a new version refuses it."""
    try:
        take_holdout(state)
    except Exception as error:  # noqa: BLE001 - a model is the user's code: whatever it raises is about these rows
        logger.warning("model %s: it is watched without its hold-out: %s", state.model_id, without_text(error))

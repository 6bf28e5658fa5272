"""Rows of models, built from their assessments."""

from __future__ import annotations

from ....config.models import ModelConfig
from ...answers.incidents import IncidentRow
from ...answers.models import ModelRow, TopFeature
from ...store.rows import StoredExplainer
from ...store.store import Store
from ..incidents import row_of
from ..numbers import known, loss_of, shares, stored
from .assessing import Assessed, count_of

SPARKS = 24
"""Shifts of a row at most."""

TOP = 5
"""Features of a row."""

_LOOKED_AT = 20
"""Incidents of a model that are looked through for the last that was not withdrawn."""


def model_row(one: Assessed, store: Store, start_ms: int | None) -> ModelRow:
    """Return the row of a model.

    Parameters
    ----------
    start_ms
        Where the window begins.
    """
    model, explainer, status = one.model, one.explainer, one.model.status
    loss = None if explainer is None else loss_of(explainer.loss, explainer.loss_unit, explainer.loss_largest)
    scalars = {} if explainer is None else explainer.scalars
    per_second = status.get("observations_per_second")
    return ModelRow(
        model_id=model.model_id,
        template=one.template,
        state=one.state,
        is_failing=one.is_failing,
        mode=one.mode,
        version=_version(one),
        n_observations=_n_observations(one),
        observations_per_second=known(per_second) if isinstance(per_second, int | float) else None,
        loss=loss,
        model_loss=known(scalars.get("model_loss")),
        baseline_loss=known(scalars.get("baseline_loss")),
        present_loss=known(scalars.get("present_loss")),
        fidelity=known(scalars.get("fidelity")),
        is_unfaithful=one.is_unfaithful,
        shift=one.shift,
        shifts=[
            known(shift)
            for shift in (
                store.recent(model.model_id, explainer.explainer, "shift", start=start_ms, points=SPARKS)
                if explainer is not None
                else ()
            )
        ],
        incident=one.incident or last_incident(store, model.model_id),
        n_waiting=one.n_waiting,
        waiting_limit=_waiting_limit(one.settings),
        n_expired=count_of(model, explainer, "n_expired"),
        n_refused=_count(status.get("n_refused")),
        n_dead_letters=one.n_dead_letters,
        last_event_ms=one.last_ms,
        explainer=None if explainer is None else explainer.explainer,
        top=[] if explainer is None else top_features(explainer),
        n_features=0 if explainer is None else len(explainer.features),
    )


def top_features(explainer: StoredExplainer, most: int = TOP) -> list[TopFeature]:
    """Return the most important features of the latest event."""
    share = shares(explainer.importance)
    return [
        TopFeature(
            feature=feature,
            importance=stored(explainer.importance[at]),
            half_width=stored(explainer.half_width[at]),
            share=share[at],
            rank=at + 1,
        )
        for at, feature in enumerate(explainer.features[:most])
    ]


def last_incident(store: Store, model_id: str) -> IncidentRow | None:
    """Return the last incident of a model that was not withdrawn."""
    found = store.incidents(model_id, last=_LOOKED_AT)
    return next((row_of(one) for one in found if one.event["life"] != "withdrawn"), None)


def _version(one: Assessed) -> str | None:
    version, explainer = one.model.status.get("model_version"), one.explainer
    said = version if isinstance(version, str) else None
    if explainer is None or (said is not None and (one.model.status_ms or 0) >= (explainer.last_ms or 0)):
        return said
    return explainer.version


def _n_observations(one: Assessed) -> int | None:
    told = _count(one.model.status.get("n_observations"))
    events = max((of.last_observation for of in one.model.explainers), default=None)
    if told is None or (one.settings is not None and one.settings.sharded):  # a status is of one shard
        return events if events is not None else told
    if events is None:
        return told
    # A model that was reset has fewer than its older events say.
    return told if (one.model.status_ms or 0) >= (one.model.last_ms or 0) else max(told, events)


def _waiting_limit(settings: ModelConfig | None) -> int | None:
    join = None if settings is None else settings.join
    return join.max_waiting if join is not None and join.ttl_ms is not None else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None

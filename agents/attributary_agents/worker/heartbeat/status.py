"""Makes the status of a model."""

from __future__ import annotations

from attributary_explainers.monitor.events import model_guard
from attributary_topics import ModelStatus, event_time

from ...models.model_state import ModelState
from ..partition import Partition


def status_of(partition: Partition, model_id: str, per_second: float | None) -> ModelStatus | None:
    """Return a model's status; None if it is neither loaded nor refused.

    Parameters
    ----------
    per_second
        Its observations per second, if that is known.
    """
    if (state := partition.models.get(model_id)) is not None:
        at, labels = state.last_observation_ms, None if state.late is None else state.late.labels
        return ModelStatus(
            model_id=model_id,
            state=_doing(state),
            model_version=state.version,
            n_observations=state.n_observations,
            n_refused=state.n_failed,
            observations_per_second=per_second,
            event_time=None if at is None else event_time(at),
            partition=partition.number,
            n_waiting=None if labels is None else labels.n_waiting,
            n_expired=None if labels is None else labels.n_expired,
            guard=None if state.loss_watch is None else model_guard(state.loss_watch.guard(state.n_observations)),
        )
    if model_id in partition.models.refused:
        return ModelStatus(
            model_id=model_id,
            state="refused",
            model_version=None,
            n_observations=None,
            n_refused=None,
            observations_per_second=None,
            event_time=None,
            partition=partition.number,
        )
    return None


def _doing(state: ModelState) -> str:
    if state.incident_watch is not None and state.incident_watch.open is not None:
        return "changed"
    is_published = any(publication.has_published for publication in state.publications.values())
    return "explained" if is_published else "learning"

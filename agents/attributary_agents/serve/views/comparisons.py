"""Choice of moments worth comparing, of a model and around an incident.

A model's beginning with its end; before an incident with after it.
"""

from __future__ import annotations

from ...config.models import ModelConfig
from ..store.rows import StoredIncident, StoredModel
from ..store.store import Store
from .choosing import explainer_of
from .moments import Moment

Pair = tuple[Moment, Moment]

_POINTS = 500
_TOP = 5


def first_with_last(store: Store, model: StoredModel, settings: ModelConfig | None) -> Pair | None:
    """Return the first moment with all intervals known, and the last.

    None where they are the same event.
    """
    explainer = explainer_of(model, settings)
    if explainer is None:
        return None
    before = store.first_known(model.model_id, explainer.explainer, explainer.features[:_TOP], points=_POINTS)
    after = explainer.last_observation
    if before is None or before >= after:
        return None
    return Moment(model.model_id, observation=before), Moment(model.model_id, observation=after)


def around(incident: StoredIncident) -> Pair | None:
    """Return moments before and after an incident; None if it has no before.

    The second is that of the incident's newest revision.
    """
    since = incident.event["since"]
    before = (since["observation"] if since["low"] is None else since["low"]) - 1
    if not 0 < before < incident.observation:
        return None
    model_id = incident.model_id
    return Moment(model_id, observation=before), Moment(model_id, observation=incident.observation)

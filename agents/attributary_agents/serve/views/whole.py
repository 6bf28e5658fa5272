"""All data of a single file, in a single object.

It holds the interface's answer to each question that the page asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from attributary_topics import Topics

from ...config.settings import Config
from ..answers import Axis, Fleet, Health, Series
from ..store.rows import StoredExplainer, StoredIncident, StoredModel
from ..store.store import Store
from .compare import around, compare, first_with_last
from .fleet import fleet
from .incidents import MOST_INCIDENTS, incident, incidents, named_by
from .model import dead_letters, dependences, model_view
from .selection import explainer_of
from .series import MOST_FEATURES, MOST_POINTS, MOST_VALUES, series

MOST_MODELS = 200
"""Models of a file, those that need attention most."""

MOST_VIEWED = 200
"""Incidents of a model of which a file has everything, the newest."""

MOST_COMPARED = 20
"""Incidents of a model around which a file compares, the newest."""

LEAST_COMPARED = 6
MOST_ROWS = 6_000
"""Features of all comparisons of a model, of which there are `LEAST_COMPARED` in any case."""

ALL_VALUES = 400_000
"""Points times features of all series of a file, about: what a browser reads within a second or two."""

LEAST_POINTS = 100

TOP = 20
"""Features of a series in a file."""


def whole(
    store: Store, config: Config, models: Iterable[str] | None = None, *, build: str = "", now_ms: int | None = None
) -> dict[str, Any]:
    """Return the object of a single file, as plain data.

    It has `health`, `fleet`, `models` (id to `view`, `series` by explainer, `incidents`, `dead_letters` and
    `dependences`), `incidents` (id to one incident) and `comparisons` (`a`, `b`, `answer`): of each model the first
    moment at which all was known with the last, and before and after each incident.

    Parameters
    ----------
    models
        Ids of the models that it shows; None: all, those that need attention most first.
    build
        Version of Attributary.
    now_ms
        When it is written; None: the time of the last event, where events have times.
    """
    stored = store.models()
    now_ms = max((model.last_ms or 0 for model in stored), default=0) if now_ms is None else now_ms
    known = {model.model_id: model for model in stored}
    overview = fleet(store, config, now_ms=now_ms, query="*", limit=MOST_MODELS)
    shown = [row.model_id for row in overview.models] if models is None else list(models)
    chosen = {model_id: known[model_id] for model_id in shown if model_id in known}
    most = ALL_VALUES // max(sum(len(model.explainers) for model in chosen.values()), 1)
    told = {model_id: store.incidents(model_id, last=MOST_VIEWED) for model_id in chosen}
    return {
        "health": _plain(_health(store, config, overview, build)),
        "fleet": _plain(overview),
        "models": {
            model_id: _model(store, config, model, told[model_id], now_ms, most) for model_id, model in chosen.items()
        },
        "incidents": {one.id: _plain(incident(store, one.id)) for found in told.values() for one in found},
        "comparisons": [
            comparison
            for model_id, model in chosen.items()
            for comparison in _comparisons(store, config, model, told[model_id])
        ],
    }


def axis_of(explainer: StoredExplainer) -> Axis:
    """Return the axis of a file's charts: time, or observations.

    Observations where events have no times, or all the same time.
    """
    has_times = explainer.first_ms is not None and explainer.first_ms != explainer.last_ms
    return "time" if has_times else "observation"


def _health(store: Store, config: Config, overview: Fleet, build: str) -> Health:
    topics: Topics = config.kafka.topics
    return Health(
        build=build,
        position=store.position,
        broker="none",
        broker_since_ms=None,
        is_reading_past=False,
        read_share=None,
        last_event_ms=max(filter(None, (row.last_event_ms for row in overview.models)), default=None),
        importances_topic=topics.importances,
        webhooks=[],
    )


def _model(
    store: Store, config: Config, model: StoredModel, told: Sequence[StoredIncident], now_ms: int, most: int
) -> dict[str, Any]:
    model_id = model.model_id
    return {
        "view": _plain(model_view(store, config, model_id, now_ms=now_ms)),
        "series": {one.explainer: _plain(_series(store, config, one, told, most)) for one in model.explainers},
        "incidents": _plain(incidents(store, config, model_id, last=MOST_INCIDENTS)),
        "dead_letters": _plain(dead_letters(store, config, model_id)),
        "dependences": _plain(dependences(store, config, model_id)),
    }


def _series(
    store: Store, config: Config, explainer: StoredExplainer, told: Sequence[StoredIncident], most: int
) -> Series:
    """Return a series with as many points as there is room for.

    The page thins it where it shows fewer.
    """
    named = named_by(told, MOST_FEATURES - TOP)
    n_features = max(min(TOP + len(named), len(explainer.features)), 1)
    return series(
        store,
        config,
        explainer.model_id,
        explainer.explainer,
        by=axis_of(explainer),
        points=max(LEAST_POINTS, min(MOST_POINTS, MOST_VALUES // n_features, most // n_features)),
        top=TOP,
        features=named,
    )


def _comparisons(
    store: Store, config: Config, model: StoredModel, told: Sequence[StoredIncident]
) -> Iterator[dict[str, Any]]:
    """Yield comparisons of a model: first and last, and around incidents.

    The first mature event with the last, and before with after each incident.

    They stand under the moments that the page links to.
    """
    settings = config.find(model.model_id)
    explainer = explainer_of(model, settings)
    if explainer is None:
        return
    found = [first_with_last(store, model, settings), *map(around, told[:MOST_COMPARED])]
    most = max(MOST_ROWS // max(len(explainer.features), 1), LEAST_COMPARED)
    for a, b in list(dict.fromkeys(pair for pair in found if pair is not None))[:most]:
        yield {"a": str(a), "b": str(b), "answer": _plain(compare(store, config, a, b, explainer.explainer))}


def _plain(answer: BaseModel) -> dict[str, Any]:
    return answer.model_dump(mode="json")

"""An `ImportanceHistory`, which can be plotted, from published events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from attributary_explainers import ChangeMark, ImportanceHistory, InvalidParameterError, loss_statement
from attributary_explainers.wording import show_number

Event = Mapping[str, Any]


def history_from_events(
    importances: Iterable[Event],
    incidents: Iterable[Event] = (),
    *,
    model_id: str | None = None,
    explainer: str | None = None,
    max_records: int = 10_000,
) -> ImportanceHistory:
    """Return the importance history of an explainer and model from events.

    The events are of the topics or of a replay's files.

    Parameters
    ----------
    importances, incidents
        Events of importance and revisions of incidents as dicts: a line of `importances.jsonl` and `incidents.jsonl`,
        parsed. Of importances, partial dependence is left out; each incident that was confirmed is marked once, as its
        last revision tells it.
    model_id, explainer
        Which events to take. None takes all, and they must then be of one model and one explainer.
    max_records
        As for `ImportanceHistory`.

    Raises
    ------
    InvalidParameterError
        There are events of several models or explainers, and none is named; or the events taken have several losses,
        or their positions go backwards.
    """
    history = ImportanceHistory(max_records)
    named = {"model_id": model_id, "explainer": explainer}
    first: dict[str, Any] = {}
    for event in importances:
        if event.get("event") != "dependence" and _is_taken(event, named, first):
            history.record(_published(event), event["observation"])
    confirmed: dict[str, int] = {}
    newest: dict[str, Event] = {}
    for event in incidents:
        if _is_taken(event, named, first):
            if event["life"] == "confirmed":
                confirmed.setdefault(event["id"], event["observation"])
            newest[event["id"]] = event
    for incident, observation in confirmed.items():
        history.mark_change(_mark(newest[incident], observation))
    return history


def _is_taken(event: Event, named: Mapping[str, str | None], first: dict[str, Any]) -> bool:
    """Return whether an event is of the named model and explainer.

    Where none is named, the first event decides, and an event of another raises InvalidParameterError.
    """
    for key, name in named.items():
        if key not in event:  # an incident has no explainer
            continue
        if name is not None and event[key] != name:
            return False
        if event[key] != first.setdefault(key, event[key]):
            both = f"{first[key]!r} and {event[key]!r}"
            raise InvalidParameterError(key, f"named, because there are events of {both}", None)
    return True


def loss_text(event: Event) -> str:
    """Describe a loss by name, unit and largest value.

    `event` is an event, or one of its importances.
    """
    name = event["loss"]
    return loss_statement(name, event.get("loss_unit", name), event.get("loss_largest"))


def quality_texts(event: Event) -> list[str]:
    """Describe each known quality metric of the model, with its reference."""
    known = {name: figure for name, figure in event["quality"].items() if figure["value"] is not None}
    return [
        f"{name} {show_number(figure['value'])}"
        + ("" if figure["reference"] is None else f" ({show_number(figure['reference'])} over the reference)")
        for name, figure in known.items()
    ]


def _published(event: Event) -> Any:
    """Return an importance event as the explainer that the history expects."""
    features = event["features"]
    # By name: events have them by rank, and features should have the same colours whichever event was first.
    return SimpleNamespace(
        name=event["explainer"],
        loss=SimpleNamespace(statement=loss_text(event)),
        importance={name: _number(features[name]["importance"]) for name in sorted(features)},
        half_width={name: _number(features[name]["half_width"]) for name in features},
    )


def _mark(event: Event, observation: int) -> ChangeMark:
    delta = {name: one["delta"] for name, one in event["features"].items() if one["significant"]}
    named = sorted(delta, key=lambda name: (-abs(delta[name]), name))
    position, since = float(observation), float(event["since"]["observation"])
    return ChangeMark.naming(position, since, named, delta) if named else ChangeMark(position, since, event["what"])


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)

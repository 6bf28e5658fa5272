"""An `ImportanceHistory`, which can be plotted, from published events."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    wanted = _Choice(model_id, explainer)
    for event in wanted.of(event for event in importances if event.get("event") != "dependence"):
        history.record(_Record.read(event), event["observation"])
    confirmed: dict[str, int] = {}
    newest: dict[str, Event] = {}
    for event in wanted.of(incidents):
        if event["life"] == "confirmed":
            confirmed.setdefault(event["id"], event["observation"])
        newest[event["id"]] = event
    for incident, observation in confirmed.items():
        history.mark_change(_mark(newest[incident], observation))
    return history


class _Choice:
    """Filter for the events of a single model and explainer.

    Where none is named, the first event decides, and an event of another raises InvalidParameterError.
    """

    def __init__(self, model_id: str | None, explainer: str | None) -> None:
        self._named = {"model_id": model_id, "explainer": explainer}
        self._first: dict[str, Any] = {}

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the chosen ones."""
        return filter(self._takes, events)

    def _takes(self, event: Event) -> bool:
        for key, name in self._named.items():
            if key not in event:  # an incident has no explainer
                continue
            if name is not None and event[key] != name:
                return False
            first = self._first.setdefault(key, event[key])
            if event[key] != first:
                both = f"{first!r} and {event[key]!r}"
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


@dataclass(frozen=True)
class _Loss:
    statement: str


@dataclass(frozen=True)
class _Record:
    """Importance event as the explainer that `ImportanceHistory` expects."""

    name: str
    loss: _Loss
    importance: dict[str, float]
    half_width: dict[str, float]

    @classmethod
    def read(cls, event: Event) -> _Record:
        features = event["features"]
        # By name: events have them by rank, and features should have the same colours whichever event was first.
        importance = {name: _number(features[name]["importance"]) for name in sorted(features)}
        half_width = {name: _number(features[name]["half_width"]) for name in features}
        return cls(event["explainer"], _Loss(loss_text(event)), importance, half_width)


def _mark(event: Event, observation: int) -> ChangeMark:
    delta = {name: one["delta"] for name, one in event["features"].items() if one["significant"]}
    named = sorted(delta, key=lambda name: (-abs(delta[name]), name))
    position, since = float(observation), float(event["since"]["observation"])
    return ChangeMark.naming(position, since, named, delta) if named else ChangeMark(position, since, event["what"])


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)

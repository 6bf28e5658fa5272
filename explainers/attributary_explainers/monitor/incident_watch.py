"""Watch of a model's incidents and of its input values."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from attributary_topics import ChangeDetails, decode_json, encode_json

from ..core.values import LATEST
from ..incidents.findings import Finding, finding_of
from ..incidents.incident import Incident, Involved, Since
from ..incidents.moved import moved_features
from ..incidents.reducer import Incidents
from ..inputs.events import InputBreak, ValueSummary
from ..inputs.monitor import InputMonitor, Reference
from ..models.function import model_kind, resolve_loss
from ..predictions import label_of
from ..smoothing.means import SmoothedMean
from ..snapshots import Stored, register
from .settings import Settings

_CHANCE = 0.01
"""Of an incident that names a feature as moved that is not."""
_KEPT = 128
"""Moments of which the time is kept, a tenth of a window apart."""


class IncidentWatch(Stored):
    """Incidents made of the watches' reports, and a watch of input values.

    It lives as long as the model id, through its versions.

    Parameters
    ----------
    learns
        Whether the model learns.
    loss
        Name of its loss, whose unit the means have.
    measure
        `error rate` or `mean absolute error`, as of `Incidents`; None where there is no label.
    watches_inputs
        Whether values are watched.
    window
        As of `Incidents`.
    alpha
        Smoothing factor of the mean label.
    """

    _unstored = ("found", "explained")

    def __init__(
        self, *, learns: bool, loss: str, measure: str | None, watches_inputs: bool, window: int, alpha: float
    ) -> None:
        self.parameters = {
            "learns": learns, "loss": loss, "measure": measure, "watches_inputs": watches_inputs, "window": window,
            "alpha": alpha,
        }  # fmt: skip
        self.incidents = Incidents(learns=learns, measure=measure, window=window)
        self.inputs = InputMonitor() if watches_inputs else None
        self.open_id: str | None = None
        """`ce_id` of the first revision of the latest incident."""
        self.explanation: dict[str, Any] | None = None
        """The latest explanation of a change within the open incident, as it was published."""
        self._before: dict[Any, Reference] = {}
        """By feature: its values before the open incident."""
        self.since_ms: int | None = None
        """Time since which the latest incident that somebody heard of has been, in milliseconds."""
        self.began = -1
        """Observations of the model that precede those of the incidents; -1 before the first."""
        self._times: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        """Observation of the model and its time, in milliseconds."""
        self._arrived: deque[int] = deque(maxlen=LATEST)
        """Times of the latest observations that came without their label, in milliseconds."""
        self._label = SmoothedMean(alpha)
        self.found: list[Any] = []
        """What watches report of the present observation."""
        self.explained: dict[str, Any] | None = None
        """The explanation that is published with the present observation."""
        self._complete()

    @property
    def open(self) -> Incident | None:
        """The open incident."""
        return self.incidents.open

    def note(self, event: Any, explained: ChangeDetails | None = None) -> None:
        """Take in a watch's report, with the change explanation in full.

        The report is of the present observation.
        """
        self.found.append(event)
        if explained is not None:
            self.explained = decode_json(encode_json(explained))

    def update(
        self,
        x: dict[str, Any] | None,
        y: Any,
        y_pred: Any,
        loss: float | None,
        constant: float | None,
        number: int,
        ms: int,
    ) -> list[Incident]:
        """Take in an observation and the noted reports; return revisions.

        Parameters
        ----------
        x
            Its features; None where `arrived` has seen them.
        y_pred, loss, constant
            The prediction that is scored, its loss, and the loss of the mean prediction; None where there is none.
        number, ms
            Number of the model's observation, and its time in milliseconds.
        """
        if self.began < 0:
            self.began = number - 1 - self.incidents.n_observations
        if not self._times or number - self._times[-1][0] >= self.incidents.window // 10:
            self._times.append((number, ms))
        found, self.found = self.found, []
        if self.inputs is not None and x is not None:
            found = [*self.inputs.update(x), *found]
        measure, measured = self.incidents.measure, None
        if measure is None or y_pred is None or loss is None:
            return self.incidents.update(found)
        if measure == "error rate":
            measured = float(label_of(y_pred) != y)
        else:
            measured, mean = abs(float(y) - y_pred), self._label.value
            constant = None if mean is None else abs(float(y) - mean)
            self._label.update(float(y))
        return self.incidents.update(found, loss=loss, measured=measured, constant=constant)

    def arrived(self, x: dict[str, Any], ms: int) -> list[Incident]:
        """Take in features whose label comes later; return revisions."""
        events = [] if self.inputs is None else self.inputs.update(x)
        self._arrived.append(ms)
        if not events:
            return []
        number = self.incidents.n_observations
        ago = max((one.observation - one.since for one in events if isinstance(one, InputBreak)), default=0)
        self._times.append((max(self.began, 0) + number, self._arrived[max(0, len(self._arrived) - 1 - ago)]))
        # The label of none of these has come: they follow the last observation that has one.
        found = (finding_of(event, number, lambda n: number - n) for event in events)
        now = Since(number, number, number)
        return self.incidents.note(
            [one if one.since is None else replace(one, since=now) for one in found if one is not None]
        )

    def end_version(self) -> list[Incident]:
        """End the present version, while its means are known; return revisions."""
        self.found, self.explained = [], None
        return self.incidents.close()

    def begin_version(self, settings: Settings, model: Any) -> None:
        """Begin the means anew where another version has another loss."""
        measure, loss = _measure(settings, model), resolve_loss(model, settings.scored_loss).name
        if (measure, loss) != (self.parameters["measure"], self.parameters["loss"]):
            self.parameters = {**self.parameters, "measure": measure, "loss": loss}
            self.incidents.begin_measure(measure)

    def replaced(self, number: int) -> list[Incident]:
        """Take in that another version takes over; return revisions.

        It does so after observation `number` of the model.
        """
        since = Since(*[max(1, number + 1 - max(self.began, 0))] * 3)
        return self._between(Finding("version", "took over", "version", opens=True, since=since))

    def went_back(self, said: str) -> list[Incident]:
        """Take in a return to the last good state; return revisions."""
        return self._between(Finding("model", said, "model", is_verdict=True))

    def _between(self, finding: Finding) -> list[Incident]:
        self.found, self.explained = [], None  # what ends with it
        return self.incidents.note([finding])

    def time_of(self, number: int) -> int | None:
        """Return the approximate time of an observation in ms; None if forgotten."""
        known = [ms for at, ms in self._times if at <= number]
        return known[-1] if known else None

    def _moved(self, told: Incident) -> tuple[Involved, ...]:
        """Return the features that moved since the open incident began.

        At its first revision, keep the values before it.
        """
        if self.inputs is None:
            return ()
        if told.revision == 0:
            self._before = self.inputs.references()
        revision = told.revision + 1
        level = _CHANCE / (revision * (revision + 1))  # all of them add up to that chance
        return moved_features(self.inputs, self._before, self.incidents.n_observations - told.since.high, level)

    def values_of(self, feature: Any) -> tuple[ValueSummary, ValueSummary] | None:
        """Return a feature's values before the incident, and its latest values.

        None where values are not watched.

        Those before are kept at its first revision: later, new values are usual.
        """
        values = None if self.inputs is None else self.inputs.values_of(feature)
        if values is None:
            return None
        before = self._before.get(feature)
        return values if before is None else (before[0], values[1])

    def begin_incident(self, open_id: str) -> None:
        """Take in that another incident begins, under this id."""
        self.open_id, self.explanation = open_id, None

    def end_incident(self) -> None:
        """Take in that the open incident is over, and has been told."""
        self.explanation = None
        if self.open is None:  # another one may have begun with it
            self._before = {}

    def _complete(self) -> None:
        self.incidents.compare, self.found, self.explained = self._moved, [], None


def new_incident_watch(settings: Settings, model: Any) -> IncidentWatch | None:
    """Make the watch of a model's incidents, before its first observation.

    None for one of several parts of a model: a part is not the whole.
    """
    if settings.sharded:
        return None
    change = settings.change or {}
    return IncidentWatch(
        learns=settings.learn,
        loss=resolve_loss(model, settings.scored_loss).name,
        measure=_measure(settings, model),
        watches_inputs=settings.watch_inputs,
        window=change.get("window") or 1000,
        alpha=settings.alpha,
    )


def _measure(settings: Settings, model: Any) -> str | None:
    if settings.mode in ("unlabelled", "anomaly") or model_kind(model) == "anomaly_detector":
        return None
    loss = resolve_loss(model, settings.scored_loss)
    if loss.is_score:
        return None
    return "mean absolute error" if loss.output == "number" else "error rate"


register(InputMonitor)
register(SmoothedMean)

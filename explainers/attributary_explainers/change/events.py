"""Events of a change explainer: alarms, explanations and dismissals."""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import Any

from .. import plots
from ..errors import InvalidParameterError
from ..losses.statement import is_score, measured
from ..notebook.cards import ShownEvent
from ..ranking import BAND, SIGNIFICANCE, largest_first
from ..wording import show_count, show_estimate, show_number
from .importance import ImportanceChange
from .verdicts import DRIFTS, Estimate, Losses, Onset

_NAMED = 4
"""Changed features that a sentence names at most; the others are counted."""

_QUIET = 3
"""Features within noise that a sentence names at most, the most important first; the others are counted."""

_AWAY = "it has moved away from its reference"

_FOUND = {
    "equal": "since then nothing has changed beyond noise",
    "easier": "the data have become easier",
    "matured": "the data are as they were, and the model is still learning",
    "degraded": "it looked worse than its reference and no longer does",
    "followed": "it is part of a change that was told",
    "harder": "it is part of a change that was told",
    "replaced": "another version has taken over",
    None: "the models cannot be compared",
}

_CHANGED = "the data changed ({loss} of the old model {then} -> {now}), and the model has "

_VERDICTS = {
    "followed": _CHANGED + "followed ({model})",
    "harder": _CHANGED + "not gained on it ({model})",
    "matured": "the data are as they were ({then}, {now}), and the model has learnt more ({model})",
    "degraded": "it is worse ({model}) than the model of {reference} ({now}) on the same observations",
}

_OF_SCORES = {
    "followed": _CHANGED + "followed: it takes them for usual ({model})",
    "harder": _CHANGED + "not followed: it takes them for no more usual ({model})",
    "matured": "the scores of the old model are as they were ({then}, {now}), and its own are lower ({model})",
    "degraded": "on the same observations its mean score is {model}, and {now} by the model of {reference}",
}
"""The same of an anomaly detector: of two scores none is better."""

_FOUND_OF_SCORES = {
    "easier": "the data look less strange than before",
    "degraded": "it scored higher than its reference and no longer does",
}

_PATTERNS = {
    "trend": "; the data keep changing: this is told once",
    "recurring": "; the data go back to what they were: this is told once",
}


@dataclass(frozen=True, kw_only=True)
class ChangeEvent(ShownEvent, abc.ABC):
    """Base of all events of a change explainer, with their shared fields.

    Attributes
    ----------
    route
        What raised the alarm: `detector`, `discrepancy`, `version` (another version took over) or `check` (a look at
        the model from time to time; no alarm).
    n_observations
        Observation at which the event was made, counted from 1 since the explainer began.
    n_detected
        Observation at which the alarm was raised, or the check made.
    reference_observation
        Observation after which the reference model was taken; that of the replacement for a version.
    detector, detector_params, signal
        The drift detector, None without one, and what it reads: `zero_one`, `loss`, or the `score` of an anomaly
        detector.
    one_sided
        Whether only a rise of that alarms.
    window
        Observations on which a verdict rests (K).
    discrepancy, threshold, n_discrepancy, distance, scale
        Discrepancy between reference and model, the threshold (tau), the observations it is the mean of, what was
        compared (`label`, `probability` or `number`), and whether it is `relative` to the spread of the targets or
        `absolute`.
    version_before, version
        Names of the model's versions, where the caller gave them.
    """

    route: str
    n_observations: int
    n_detected: int
    reference_observation: int
    detector: str | None
    detector_params: dict[str, Any]
    signal: str
    window: int
    discrepancy: float
    threshold: float
    n_discrepancy: int
    distance: str
    scale: str
    version_before: str | None = None
    version: str | None = None
    one_sided: bool = True

    def sentence(self, model_id: str = "the model", observation: int | None = None) -> str:
        """Return an English sentence about the event.

        Of an explanation it says since when, what happened, and which features. The number after each plus-minus sign
        is the half-width of a 95 % interval, 1.96 standard errors.

        Parameters
        ----------
        observation
            Number of the event's observation, for a caller that does not count from the explainer's beginning; all
            numbers in the sentence are then the caller's.
        """
        shift = 0 if observation is None else observation - self.n_observations
        return self._words(model_id, shift)

    @abc.abstractmethod
    def _words(self, model_id: str, shift: int) -> str:
        """Return the sentence; `shift` is added to the numbers of observations."""

    def _noticed(self, n: int) -> str:
        """Return where an alarm was raised; for a version, its first observation."""
        return show_count(n + (self.route == "version"))


@dataclass(frozen=True, kw_only=True)
class Alarm(ChangeEvent):
    """An alarm: a model may have changed, or another version took over.

    It is closed by the `ChangeExplanation` or `NotConfirmed` whose `closes` is `n_observations` of the alarm.

    Attributes
    ----------
    due
        Observation at which the verdict is expected, if the model predicts for all until then.
    """

    due: int

    def _words(self, model_id: str, shift: int) -> str:
        at, due = self._noticed(self.n_observations + shift), show_count(self.due + shift)
        if self.route == "version":
            return f"{model_id} {_version(self)} at {at}: the two are compared on what neither has learnt, until {due}"
        why = _AWAY if self.route == "discrepancy" else _moved_signal(self)
        return f"{model_id} may have changed at {at} ({why}): it is examined until {due}"


@dataclass(frozen=True, kw_only=True)
class NotConfirmed(ChangeEvent):
    """Says that an alarm was nothing worth telling.

    Attributes
    ----------
    closes
        `n_observations` of the alarm.
    found
        What the losses say: `equal`, `easier`, `matured`, `degraded` (a doubt that did not last), `followed` or
        `harder` (part of what was told already), `replaced` by another version; None where nothing can be compared.
    losses
        The losses that this rests on; None where there are none.
    """

    closes: int
    found: str | None
    losses: Losses | None = None

    def _words(self, model_id: str, shift: int) -> str:
        found = _FOUND[self.found]
        if self.losses is not None and is_score(self.losses.loss):
            found = _FOUND_OF_SCORES.get(self.found or "", found)
        return f"the alarm of {model_id} at {self._noticed(self.closes + shift)} is not confirmed: {found}"


def _of_first(name: str) -> Any:
    """Return a property: this attribute of the first method's change."""
    return property(lambda told: getattr(told.first, name), doc=f"`{name}` of the change in importance, `first`.")


@dataclass(frozen=True, kw_only=True)
class ChangeExplanation(ChangeEvent):
    """Verdict on a model's change, with the features that gained or lost.

    The attributes of `ImportanceChange` are there too, of the first method: `delta`, `significant()` ...

    Attributes
    ----------
    verdict
        `followed`, `harder`, `matured` or `degraded`, see `Losses.verdict`; None for versions, and for the paper's
        procedure.
    closes
        `n_observations` of the alarm; None for a check, which has none.
    losses
        The losses that the verdict rests on; None in the paper's procedure.
    onset
        Since when; None for `matured`, and for versions.
    pattern
        `trend` or `recurring` where this change follows another: changes that continue it are not told. None: a single
        one.
    importances
        Method, `pfi` or `sage`, to the change in importance.
    failure
        Why there are no importances, where a model failed on rows whose features were replaced; else None.
    """

    verdict: str | None
    closes: int | None = None
    losses: Losses | None = None
    onset: Onset | None = None
    pattern: str | None = None
    importances: dict[str, ImportanceChange] = field(default_factory=dict)
    failure: str | None = None

    def _words(self, model_id: str, shift: int) -> str:
        head = f"{model_id} {_head(self, shift)}"
        if self.losses is not None and self.verdict is not None:
            head += f": {_what(self.losses, self.verdict, self.reference_observation + shift)}"
        elif self.losses is not None:
            head += f": {_better(self.losses)}"
        return f"{head}{_PATTERNS.get(self.pattern or '', '')}{_features(self)}"

    @property
    def is_drift(self) -> bool:
        """Whether the data have changed."""
        return self.verdict in DRIFTS

    @property
    def first(self) -> ImportanceChange:
        """The change in importance by the first method.

        Raises
        ------
        InvalidParameterError
            The explanation has no importances.
        """
        if not self.importances:
            raise InvalidParameterError("importances", "pfi or sage, to have a change in importance", ())
        return next(iter(self.importances.values()))

    loss, features = _of_first("loss"), _of_first("features")
    before, before_std_error, before_ranks = map(_of_first, ("before", "before_std_error", "before_ranks"))
    after, after_std_error, after_ranks = map(_of_first, ("after", "after_std_error", "after_ranks"))
    delta, delta_std_error, p_values = map(_of_first, ("delta", "delta_std_error", "p_values"))
    shift, ndcg = _of_first("shift"), _of_first("ndcg")

    def significant(self, level: float = SIGNIFICANCE) -> list[Any]:
        """Return the features changed beyond noise; see `ImportanceChange`."""
        return self.first.significant(level) if self.importances else []

    def plot(self, top: int = 10, band: float = BAND, method: str | None = None, ax: Any = None) -> Any:
        """Draw importance before and after; return Axes. See `plots.change`."""
        return plots.change(self, top, band, method, ax)


def _moved_signal(event: Alarm) -> str:
    """Return the observed move of the drift detector's signal, in words."""
    is_score_read = event.signal == "score"
    return f"its {'mean score' if is_score_read else 'loss'} {'rose' if event.one_sided else 'moved'}"


def _head(event: ChangeExplanation, shift: int) -> str:
    if event.route == "version":
        at, size = event._noticed(event.n_detected + shift), show_number(event.discrepancy)
        return f"{_version(event)} at {at} (discrepancy {size})"
    if event.verdict is None:
        sides = _compared(event.discrepancy, event.threshold)
        return f"changed at {show_count(event.n_observations + shift)} (discrepancy {sides})"
    is_of_scores = event.losses is not None and is_score(event.losses.loss)
    if event.verdict == "matured":
        return f"has matured since {show_count(event.reference_observation + shift)}"
    since = _since(event.onset, event.n_detected, shift)
    if event.verdict == "degraded":
        return f"{'began to score higher' if is_of_scores else 'has become worse'} {since}"
    return f"changed {since}"


def _since(onset: Onset | None, n_detected: int, shift: int) -> str:
    noticed = f"noticed at {show_count(n_detected + shift)}"
    if onset is None:
        return f"({noticed})"
    said = onset.after(shift).sentence(noticed)
    return said if onset.low is None else f"at {said}"


def _what(losses: Losses, verdict: str, reference: int) -> str:
    then = losses.reference_then
    return (_OF_SCORES if is_score(losses.loss) else _VERDICTS)[verdict].format(
        loss=measured(losses.loss),
        then="unknown" if then is None or then.n == 0 else show_number(then.mean),
        now=show_number(losses.reference_now.mean),
        model=show_number(losses.model_now.mean),
        reference=show_count(reference),
    )


def _better(losses: Losses) -> str:
    old, new = losses.reference_now.mean, losses.model_now.mean
    sign = _beyond(losses.gain, 0.1 * abs(old))
    word = {1: "lower", -1: "higher", 0: "about equal"}[sign]
    return f"its {measured(losses.loss)} is {word} ({show_number(old)} -> {show_number(new)})"


def _beyond(gain: Estimate, margin: float) -> int:
    """Return the gain's sign if 1.96 standard errors beyond `margin`, else 0."""
    if abs(gain.mean) - margin <= BAND * gain.std_error:
        return 0
    return 1 if gain.mean > 0 else -1


def _version(event: ChangeEvent) -> str:
    old = f" from version {event.version_before}" if event.version_before is not None else ""
    return f"went{old} to version {event.version}" if event.version is not None else "has a new version"


def _features(event: ChangeExplanation) -> str:
    if event.failure is not None:
        return f"; no importances: {event.failure}"
    if not event.importances:
        return ""
    first = event.first
    named = largest_first(first.delta, [f for f, p in first.p_values.items() if p <= SIGNIFICANCE])
    if not named:
        return "; no feature's importance changed beyond noise"
    delta, error = first.delta, first.delta_std_error
    parts = [_moved(f, delta[f], error.get(f, 0.0), whole=i == 0) for i, f in enumerate(named[:_NAMED])]
    if (hidden := len(named) - _NAMED) > 0:
        parts.append(f"{hidden} more changed by less")
    return "; " + "; ".join([", ".join(parts), *_quiet(first, named)])


def _quiet(first: ImportanceChange, named: list[Any]) -> list[str]:
    """Return the text on features within noise, most important first."""
    known = set(named)
    size = {f: max(abs(first.before.get(f, 0.0)), abs(first.after.get(f, 0.0))) for f in first.features}
    quiet = largest_first(size, [f for f in first.features if f not in known])
    if not quiet:
        return []
    shown = quiet[:_QUIET] if len(quiet) > _QUIET + 1 else quiet
    more = f" and {len(quiet) - len(shown)} more" if len(quiet) > len(shown) else ""
    return [f"{', '.join(map(str, shown))}{more} within noise"]


def _compared(discrepancy: float, threshold: float) -> str:
    """Return "a > b" or "a <= b", with decimals enough to tell them apart."""
    sign = ">" if discrepancy > threshold else "<="
    for decimals in range(2, 17):
        shown = f"{discrepancy:.{decimals}f}", f"{threshold:.{decimals}f}"
        if shown[0] != shown[1] or discrepancy == threshold:
            break
    return f"{shown[0]} {sign} {shown[1]}"


def _moved(feature: Any, change: float, std_error: float, *, whole: bool) -> str:
    verb, of = ("gained", " of importance") if change > 0 else ("lost", " of its importance")
    return f"{feature} {verb} {show_estimate(abs(change), BAND * std_error)}{of if whole else ''}"

"""Events of a change explainer: alarms, explanations and dismissals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .. import plots
from ..errors import InvalidParameterError
from ..notebook.cards import ShownEvent
from ..ranking import BAND, SIGNIFICANCE
from . import sentences
from .importance import ImportanceChange
from .judging import DRIFTS, Losses, Onset


@dataclass(frozen=True, kw_only=True)
class ChangeEvent(ShownEvent):
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

    _says: ClassVar[Any]
    """Function of the module `sentences`."""

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
        return str(self._says(self, model_id, shift))


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

    _says = staticmethod(sentences.of_alarm)


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

    _says = staticmethod(sentences.of_not_confirmed)


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

    _says = staticmethod(sentences.of_explanation)

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

"""Incidents of a model, and the types of their parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..notebook.cards import ShownEvent
from ..snapshots import Stored
from .words import action_of, details_of, headline_of, sentence_of

What: TypeAlias = Literal["inputs", "worse", "changed", "level", "harder", "relies_differently", "version", "recovered"]
"""What happened.

`inputs`: the values of a feature broke. `changed`: the data follow another rule, and the model that learns has adapted.
`worse`: the model makes more mistakes than it did, and stays so. `level`: the base rate, or the mean of the target,
moved. `harder`: more is lost, no more than the model's own doubt says. `relies_differently`: importances moved, and the
loss did not, or is not known. `version`: another version took over. `recovered`: the model failed on what came and
went back to its last good state.
"""
Life: TypeAlias = Literal["suspected", "confirmed", "over", "withdrawn"]
Severity: TypeAlias = Literal["info", "warning", "critical"]
Advice: TypeAlias = Literal["look_at_inputs", "look_at_labels", "retrain", "shift_intercept", "roll_back", "nothing"]
Reason: TypeAlias = Literal["suspected", "confirmed", "raised", "lasts", "returned", "settled", "replaced", "noise"]
"""Why a revision was made.

`raised`: it is something worse than was said. `lasts`: it has lasted for 2, 4, 8 … windows. `returned`: the loss, or
the values, are as before. `settled`: they stay as they are. `replaced`: another version took over. `noise`: nothing
stands behind the suspicion.
"""


@dataclass(frozen=True, slots=True)
class Since(Stored):
    """Onset: an observation with a 95 % interval; `low` is None if open."""

    observation: int
    low: int | None
    high: int


@dataclass(frozen=True, slots=True)
class Mean(Stored):
    """A mean, with half the width of its 95 % interval, or 0 if unknown."""

    value: float
    half_width: float


MOVED = "moved: "
"""How `said` begins where the values are not wrong, and come more or less often than they did."""
_MIRRORS = 1 / 3
"""Error rate below which a model can be told from its mirror."""


@dataclass(frozen=True, slots=True)
class Effect(Stored):
    """A mean before the onset, in the window after it, and in the latest.

    `name` is `loss`, the measure beside it, such as `error rate` or `mean absolute error`, or `constant`: the same of a
    constant prediction, where the model is of no more use than that. Where the level moved, it is also `share of` a
    label, or `mean target`. None where too little is known.
    """

    name: str
    before: Mean | None
    after: Mean | None
    now: Mean | None

    @property
    def is_mirrored(self) -> bool:
        """Whether right predictions became wrong, and wrong predictions right."""
        if self.name != "error rate" or self.before is None or self.now is None or self.before.value > _MIRRORS:
            return False
        apart = abs(self.before.value + self.now.value - 1.0)
        return apart <= self.before.half_width + self.now.half_width


@dataclass(frozen=True, slots=True)
class Involved(Stored):
    """A feature that has to do with it.

    `before`, `after` and `delta` are importances, None where only its values are known; `moved`: whether its values
    moved; `said`: how, or what is wrong with them, in words.
    """

    name: Any
    before: float | None = None
    after: float | None = None
    delta: float | None = None
    half_width: float | None = None
    significant: bool = False
    moved: bool = False
    said: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether its values are wrong, and not only others than before."""
        return bool(self.said) and not self.said.startswith(MOVED)


@dataclass(frozen=True, slots=True)
class Evidence(Stored):
    """Finding of a watch, as evidence of an incident.

    `watch` is `change`, `loss`, `importance`, `inputs`, `constant`, `version` or `model`.
    """

    watch: str
    said: str
    observation: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class Incident(ShownEvent, Stored):
    """Something that happened to a model, as known at a given moment.

    A revision replaces all earlier ones of the same `number`. Observations are those of the model, from 1.

    Attributes
    ----------
    number, revision
        The incident, from 1, and which word about it this is.
    life, reason
        How far it is, and why this revision was made.
    observation
        At which this revision was made.
    effects
        The loss, the measure beside it, and that of a constant where the model is worse.
    features
        At most ten, the most important first.
    intercept
        What to add to the logit (for numbers: to the prediction), where the advice is `shift_intercept`.
    again
        Changes that came while it was open.
    evidence
        What each watch found, the first first; at most twenty.
    """

    number: int
    revision: int
    what: What
    life: Life
    severity: Severity
    reason: Reason
    observation: int
    since: Since
    effects: tuple[Effect, ...]
    features: tuple[Involved, ...]
    advice: Advice
    intercept: float | None
    again: int
    evidence: tuple[Evidence, ...]

    @property
    def is_heard(self) -> bool:
        """Whether the incident is open and somebody is to hear of it.

        That is so if it is confirmed, or suspected and critical.
        """
        return self.life == "confirmed" or (self.life == "suspected" and self.severity == "critical")

    def headline(self, model_id: str = "the model") -> str:
        """Return the verdict in at most 80 characters, for a short id."""
        return headline_of(self, model_id)

    def action(self) -> str:
        """Return the action to take, and whether now or in the morning."""
        return action_of(self)

    def details(self) -> str:
        """Return the details: fault, onset, extent and features."""
        return details_of(self)

    def sentence(self, model_id: str = "the model") -> str:
        """Return headline, action and details."""
        return sentence_of(self, model_id)

"""Events about a model's loss: a shift, its features, and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..change.verdicts import Onset
from ..notebook.cards import ShownEvent
from ..snapshots import Stored
from ..wording import show_count, show_number

Kind: TypeAlias = Literal["worse", "level", "harder", "rose"]
"""What an owner can act on.

`worse`: the model is wronger than it was, given what it predicts. `level`: the base rate (of numbers: the mean) has
moved, and the order of observations is as good as before. `harder`: more is lost, but no more than the model's own
doubt says. `rose`: the loss rose; a model that gives labels or numbers does not say whether that is its fault.
"""

Signal: TypeAlias = Literal["loss", "excess", "slope", "level"]
Reason: TypeAlias = Literal["returned", "settled", "replaced"]

_NAMED = 4

_KINDS = {
    "worse": "has become worse: it is wronger than it was, given what it predicts",
    "level": "is off its level: the order of observations is as good as before",
    "harder": "loses more because observations are harder: no more than its own doubt says",
    "rose": "loses more than before",
}
_UNSURE = {
    "harder": "loses more because observations are harder: they come from where more was lost before, too",
    "level": "is off its level: the mean of what it predicts is not that of what comes",
}
"""The same of a model that gives labels or numbers, and does not say how sure of itself it is."""
_SPLIT = "has split its tree and learns the new leaves"
_LOSSES = {
    "log_loss": "log loss",
    "zero_one": "wrong predictions",
    "absolute": "mean absolute error",
    "squared": "mean squared error",
}
"""Losses in words of their own."""
_ENDS = {
    "returned": "is over",
    "settled": "has become another one, which is told next",
    "replaced": "ends: another version has taken over",
}


@dataclass(frozen=True, slots=True)
class Moved(Stored):
    """A mean before and after, the 95 % interval of the change, and its z."""

    before: float
    after: float
    low: float
    high: float
    z: float


@dataclass(frozen=True, slots=True)
class LevelMoved(Stored):
    """How often a label came, and how often the model expected it.

    `before` is how often it came in the reference, None where that is not known. For numbers (label None) they are the
    mean target and the mean prediction. `intercept` is what to add to the label's
    logit (for numbers: to the prediction) so that the two agree; None for a model that gives labels alone.
    """

    label: Any
    expected: float
    observed: float
    intercept: float | None
    before: float | None = None

    def sentence(self, *, advises: bool) -> str:
        """Return the level that came, the expected level, and a remedy."""
        if self.label is None:
            observed, expected = show_number(self.observed), show_number(self.expected)
            mends = f": adding {show_number(self.intercept, signed=True)} to predictions mends it" if advises else ""
            return f"targets are {observed} on average where {expected} is predicted{mends}"
        observed, expected = (f"{show_number(100.0 * share)} %" for share in (self.observed, self.expected))
        if self.intercept is None:
            return f"the share of {self.label!r} is {observed} where {expected} is predicted"
        can_be_mended = advises and 0.0 < self.observed < 1.0
        unless = "if labels are complete, " if self.intercept < 0.0 else ""
        mends = f": {unless}adding {self.intercept:+.2f} to its logit mends it" if can_be_mended else ""
        return f"the share of {self.label!r} is {observed} where such predictions had {expected} before{mends}"


@dataclass(frozen=True, slots=True)
class LossShift(ShownEvent, Stored):
    """A lasting shift of a model's loss, reported on good evidence.

    `observation` is the number, from 1, of the observation at which it is reported; `due_at` is the one at which
    features are named (None where there is no model to ask). In all figures `before` is the mean of the `n_reference`
    observations of the reference, and `after` that of the latest `n_window`. `signal` is the one that passed its test.
    `has_split` says that the model is a tree that has just split or pruned a branch: that costs loss until its new
    leaves have learnt, and is no fault of the data.
    """

    kind: Kind
    signal: Signal
    observation: int
    onset: Onset
    loss: Moved
    excess: Moved | None
    slope: Moved | None
    level: tuple[LevelMoved, ...]
    n_reference: int
    n_window: int
    loss_name: str
    loss_unit: str
    loss_largest: float | None
    due_at: int | None = None
    has_split: bool = False

    def sentence(self, model_id: str = "the model") -> str:
        """Return an English sentence about the event: kind, onset and size."""
        what = _SPLIT if self.has_split else ""  # if it lasts, the explanation says that it is worse
        return f"{self.head(model_id, what)}; {self.figures()}"

    def head(self, model_id: str, what: str = "") -> str:
        """Return the kind of the shift in words, and its onset."""
        what = what or (_KINDS if self.excess is not None else _KINDS | _UNSURE)[self.kind]
        return f"{model_id} {what}, since {self.onset.sentence(f'noticed at {show_count(self.observation)}')}"

    def figures(self, *, advises: bool = False) -> str:
        """Return the figures, with a remedy if `advises`.

        A first event rests on too few rows for a remedy.
        """
        loss = self.loss
        # Of numbers one observation counts twelve times the mean loss at most.
        least = "at least " if self.loss_largest is None and loss.after > 3.0 * loss.before else ""
        before, after = (self.amount(value) for value in (loss.before, loss.after))
        name = _LOSSES.get(self.loss_name, self.loss_name.replace("_", " ") + " loss")
        said = [f"{name} {before} -> {least}{after}"]
        more = 0.0 if self.excess is None else self.excess.after - self.excess.before
        if more > 0.0 and self.kind == "worse":
            said.append(
                f"{show_number(100.0 * more)} points more than such predictions had wrong before"
                if self.loss_name == "zero_one"
                else f"{show_number(more)} more than such predictions cost before"
            )
        if self.kind == "rose" and self.slope is not None and self.slope.z >= 2.5:
            said.append("and predictions overreach")
        said += [one.sentence(advises=advises) for one in self.level] if self.kind == "level" else []
        return ", ".join(said)

    def amount(self, value: float) -> str:
        """Return a mean loss in the unit that people read."""
        return f"{show_number(100.0 * value)} %" if self.loss_name == "zero_one" else show_number(value)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A feature that may have to do with a shift of the loss.

    `score` orders features, in the unit of the loss. `p_value` belongs to `delta`, the change of the importance, and is
    adjusted for several features (Holm). `moved`, in [0, 1], is how far the distribution of its values moved
    beyond chance. `significant` features are named in the sentence.
    """

    name: Any
    score: float
    importance_before: float
    importance_after: float
    delta: float
    delta_std_error: float
    p_value: float
    moved: float
    significant: bool

    def words(self) -> str:
        """Return the name, and how the feature moved."""
        parts = ["its values moved"] if self.moved > 0.0 else []
        if self.p_value <= 0.05:
            parts.append(
                f"its importance {show_number(self.importance_before)} -> {show_number(self.importance_after)}"
            )
        return f"{self.name} ({', '.join(parts)})" if parts else str(self.name)


@dataclass(frozen=True, slots=True)
class LossShiftExplained(ShownEvent):
    """Features that go with a shift, and its figures since the onset.

    `shift` is the shift reported again: its kind replaces the first one. Importances and scores are in the unit of
    `importance_loss`, which is the squared loss for numbers. `expected` is the share of the loss's rise that the values
    of the features explain; None where the model itself says what it expects to lose.
    """

    shift: LossShift
    observation: int
    features: tuple[Suspect, ...]
    n_before: int
    n_after: int
    expected: float | None = None
    importance_loss: str = ""

    def sentence(self, model_id: str = "the model") -> str:
        """Return an English sentence that names features."""
        named = [one for one in self.features if one.significant]
        more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        if named:
            found = f"look first at {', '.join(one.words() for one in named[:_NAMED])}{more}"
        else:
            found = "no feature stands out" if self.features else "no model was given to name features by"
        loss = self.importance_loss.partition("(")[0].replace("_", " ")
        unit = f" (importance: {loss} loss)" if named and loss else ""
        return f"explained: {self.shift.head(model_id)}; {self.shift.figures(advises=True)}; {found}{unit}"


@dataclass(frozen=True, slots=True)
class LossShiftEnd(ShownEvent):
    """The end of a shift: loss returned, settled, or model replaced."""

    shift: LossShift
    reason: Reason
    observation: int
    loss: Moved

    def sentence(self, model_id: str = "the model") -> str:
        """Return an English sentence about the event."""
        told = self.shift
        said = f"the shift of the loss of {model_id} told at {show_count(told.observation)} {_ENDS[self.reason]}"
        if self.reason != "returned":
            return said
        # More may be lost than before, as while a model learns what is new: it says itself that it is less sure.
        again = ": the model is as right as it says again," if told.kind == "worse" and told.excess else ":"
        before, after = told.amount(self.loss.before), told.amount(self.loss.after)
        return f"{said}{again} the loss is {after} now, and was {before} before it"


LossEvent: TypeAlias = LossShift | LossShiftExplained | LossShiftEnd
"""What `LossMonitor.update` returns; `isinstance` takes it."""

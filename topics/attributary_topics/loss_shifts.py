"""Defines the events of the route `loss`: a model's loss has shifted, which features have to do with it, it is over."""

from __future__ import annotations

from dataclasses import dataclass

from .absent import absent
from .events import OnsetEstimate, Source


@dataclass(frozen=True, slots=True)
class FigureMoved:
    """Holds a mean before and after, the bounds of the 95 % interval of their difference, and z.

    z is the difference divided by its standard error. What is not known is null.
    """

    before: float | None
    after: float | None
    low: float | None
    high: float | None
    z: float | None


@dataclass(frozen=True, slots=True)
class LevelMoved:
    """Says how often a label came and how often the model expected it; of numbers (label null) the two means.

    `intercept` is what to add to the logit of the label, or to a prediction that is a number, so that the two agree.
    """

    label: str | int | float | bool | None
    expected: float | None
    observed: float | None
    intercept: float | None


@dataclass(frozen=True, slots=True)
class LossSuspect:
    """Says how suspicious a feature is of having to do with a shift of the loss.

    Attributes
    ----------
    score
        Orders the features, in the unit of the loss.
    importance_before, importance_after, delta, delta_std_error
        Importance before and after the onset, their difference, and its standard error.
    p_value
        How probable a delta as large is where nothing has changed, adjusted for there being several features (Holm).
    moved
        How far the distribution of the feature's values has moved beyond chance, in [0, 1].
    significant
        Whether the sentence names the feature.
    """

    score: float | None
    importance_before: float | None
    importance_after: float | None
    delta: float | None
    delta_std_error: float | None
    p_value: float | None
    moved: float | None
    significant: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _LossShift:
    """Holds what is said of a shift of the loss each time that it is told.

    Attributes
    ----------
    kind
        `worse`: the model is wronger than it was, given what it predicts. `level`: the base rate (of numbers: the mean)
        has moved, and the order of observations is as good. `harder`: more is lost, no more than the model's own doubt
        says, or the values of its features explain. `rose`: the loss rose, and a model of labels or numbers does not
        say whether that is its fault.
    signal
        What passed its test: `loss`, `excess`, `slope` or `level`.
    observation, detected_at, onset
        Where it is told, where the shift was told first, and since when.
    model_loss, excess, slope
        Mean loss of the model; the loss beyond what was to be expected of its predictions; and how far
        predictions go beyond what comes true. Each before, over the reference, and after.
    level
        The labels whose rate has moved.
    n_reference, n_window
        Observations of before and of after.
    has_split
        Whether the model is a tree that has split just before: that costs loss until its new leaves have learnt.
    loss, loss_unit, loss_largest
        As of `ImportanceEvent`.
    """

    event: str = ""
    model_id: str
    model_version: str
    route: str = "loss"
    kind: str
    signal: str
    observation: int
    detected_at: int
    onset: OnsetEstimate
    model_loss: FigureMoved
    excess: FigureMoved | None
    slope: FigureMoved | None
    level: list[LevelMoved]
    n_reference: int
    n_window: int
    has_split: bool
    loss: str
    loss_unit: str
    loss_largest: float | None
    sentence: str
    source: Source | None = absent()
    mode: str | None = absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class LossShiftEvent(_LossShift):
    """Says that a model's loss has shifted lastingly, as soon as there is good evidence.

    Attributes
    ----------
    due_at
        Number of the observation at which features are named; null where there is no model to ask.

    The others are those of its base class.
    """

    event: str = "loss_shift"
    due_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossShiftExplainedEvent(_LossShift):
    """Says which features have to do with a shift of the loss, and its figures over all observations since the onset.

    Attributes
    ----------
    change_id
        `ce_id` of the shift, whose kind it may tell otherwise: then this one counts.
    features
        All of them, the most suspicious first.
    importance_loss
        Loss that scores and importances are in: the squared one of numbers, whatever the shift is of.
    n_before, n_after
        Stored observations that the importances are of.
    expected
        Share of the rise of the loss that the values of the features explain; null where the model itself says what
        it expects to lose.

    The others are those of its base class.
    """

    event: str = "loss_shift_explained"
    change_id: str | None
    features: dict[str, LossSuspect]
    importance_loss: str
    n_before: int
    n_after: int
    expected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossShiftReleasedEvent(_LossShift):
    """Says that a shift of the loss is over; `model_loss` is of the reference and of now, all else as last told.

    Attributes
    ----------
    change_id
        `ce_id` of the shift that it closes.
    reason
        `returned`: the loss is where it was; `settled`: the new one is the reference from now on; `replaced`: another
        version has taken over before that.
    """

    event: str = "loss_shift_released"
    change_id: str | None
    reason: str

"""Events about a model's loss: a shift, its features, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, TypeAlias

from ..change.judging import Onset
from ..notebook.cards import ShownEvent
from ..typing import Snapshot
from .sentences import of_end, of_explanation, of_shift

Kind: TypeAlias = Literal["worse", "level", "harder", "rose"]
"""What an owner can act on.

`worse`: the model is wronger than it was, given what it predicts. `level`: the base rate (of numbers: the mean) has
moved, and the order of observations is as good as before. `harder`: more is lost, but no more than the model's own
doubt says. `rose`: the loss rose; a model that gives labels or numbers does not say whether that is its fault.
"""

Signal: TypeAlias = Literal["loss", "excess", "slope", "level"]
Reason: TypeAlias = Literal["returned", "settled", "replaced"]


@dataclass(frozen=True, slots=True)
class Moved:
    """A mean before and after, the 95 % interval of the change, and its z."""

    before: float
    after: float
    low: float
    high: float
    z: float


@dataclass(frozen=True, slots=True)
class LevelMoved:
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


@dataclass(frozen=True, slots=True)
class LossShift(ShownEvent):
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
        """Return an English sentence about the event."""
        return of_shift(self, model_id)

    def snapshot(self) -> Snapshot:
        """Return plain data to restore from."""
        return asdict(self)

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self:
        """Return the shift that the snapshot was taken of."""
        given = dict(snapshot)
        given["onset"] = Onset(**given["onset"])
        for name in ("loss", "excess", "slope"):
            given[name] = None if given[name] is None else Moved(**given[name])
        given["level"] = tuple(LevelMoved(**one) for one in given["level"])
        return cls(**given)


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
        """Return an English sentence about the event."""
        return of_explanation(self, model_id)


@dataclass(frozen=True, slots=True)
class LossShiftEnd(ShownEvent):
    """The end of a shift: loss returned, settled, or model replaced."""

    shift: LossShift
    reason: Reason
    observation: int
    loss: Moved

    def sentence(self, model_id: str = "the model") -> str:
        """Return an English sentence about the event."""
        return of_end(self, model_id)


LossEvent: TypeAlias = LossShift | LossShiftExplained | LossShiftEnd
"""What `LossMonitor.update` returns; `isinstance` takes it."""

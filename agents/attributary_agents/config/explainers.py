"""What the configuration says of explainers: of importance, of change, and how much is spent on them.

The parameters are those of the explainers in `attributary_explainers`: their signatures declare them, with defaults.
"""

from __future__ import annotations

from inspect import signature
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from river.dummy import NoChangeClassifier

from attributary_explainers import (
    DETECTOR_NAMES,
    LOSS_NAMES,
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ChangeExplainer,
    ExplainerError,
)
from attributary_explainers.monitor.settings import default_of

from .section import Alpha, PositiveInt, Section, one_of

ExplainerName = Literal["pfi", "sage"]


class ExplainerConfig(Section):
    """One incremental explainer."""

    n_samples: PositiveInt = Field(
        default_of("n_samples"), description="Draws per feature (pfi) or coalition (sage). Cost is proportional."
    )
    removal: str = Field(
        default_of("removal"),
        description="Where removed features take their values: interventional (one stored observation for all), "
        "product (one for each), observational (shifted to fit the features that are kept), "
        "observational-trees (given these, by a tree per feature, as in the iSAGE paper).",
    )
    reservoir: str = Field(
        "lagged",
        description="Which observations replacements are drawn from: lagged has those of a long window that are old "
        "enough to be unlike the present ones; uniform remembers for ever, geometric favours the recent, "
        "sliding_window forgets all else.",
    )
    reservoir_size: PositiveInt | None = Field(
        None, description="Observations that replacements are drawn from; 100, or of lagged 100 to 500 by alpha."
    )
    gap: PositiveInt | None = Field(
        None, description="Of lagged only: after how many observations one may be drawn, 200 by default."
    )
    reach: PositiveInt | None = Field(
        None,
        description="Of lagged only: mean age of the stored ones beyond the gap, 3 / alpha by default.",
    )
    sampling: str = Field(
        "stratified", description="stratified spreads draws over the reservoir, independent draws as the papers do."
    )
    alpha: Alpha | None = Field(None, description="Smoothing; the model's alpha where it is not given.")
    n_permutations: PositiveInt | None = Field(
        None, description=f"Of sage only: per observation, {default_of('n_permutations')} by default."
    )
    bias_correction: bool | None = Field(
        None,
        description=f"Of sage only: of the bias of few draws, {str(default_of('bias_correction')).lower()} by default.",
    )

    @field_validator("removal", "reservoir", "sampling")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        names = {"removal": REMOVAL_NAMES, "reservoir": RESERVOIR_NAMES, "sampling": SAMPLING_NAMES}
        return one_of(value, names[str(info.field_name)])

    @model_validator(mode="after")
    def _fits_the_reservoir(self) -> Self:
        if self.reservoir != "lagged" and (foreign := [n for n in ("gap", "reach") if getattr(self, n) is not None]):
            raise ValueError(f"the reservoir {self.reservoir} has no {' or '.join(foreign)}: only lagged has")
        return self

    def of_sage(self) -> dict[str, Any]:
        """Return the arguments that only sage has, where they are given."""
        own = {"n_permutations": self.n_permutations, "bias_correction": self.bias_correction}
        return {name: value for name, value in own.items() if value is not None}


_CHANGE = signature(ChangeExplainer).parameters


_CHECKED: set[str] = set()
"""Parameters that a change explainer takes: thousands of models may have the same."""


class ChangeConfig(Section):
    """Explanation of model change."""

    window: Annotated[int, Field(ge=20)] = Field(
        _CHANGE["window"].default,
        description="Observations after an alarm on which the verdict rests (K); also those of a comparison of "
        "versions.",
    )
    threshold: Annotated[float, Field(ge=0)] = Field(
        _CHANGE["threshold"].default, description="Discrepancy above which the model counts as another one (tau)."
    )
    discrepancy: Literal["relative", "absolute"] = Field(
        _CHANGE["discrepancy"].default,
        description="relative: divided by the spread of the targets; absolute has the unit of `distance`.",
    )
    distance: Literal["label", "probability", "number"] | None = Field(None, description="What is compared.")
    watch_discrepancy: bool = Field(
        _CHANGE["watch_discrepancy"].default,
        description="Whether the discrepancy raises alarms of its own: slow change, of which no detector tells.",
    )
    detector: str | None = Field(
        _CHANGE["detector"].default,
        description="Drift detector on the model's error; null: the discrepancy alone raises alarms.",
    )
    detector_params: dict[str, Any] | None = Field(
        None, description="Of the detector. null: River's, and 0.025 for ADWIN's delta: larger alarms more."
    )
    signal: Literal["zero_one", "loss"] | None = Field(
        None, description="What the detector reads: the 0/1 error, or the loss without a unit, in [0, 1)."
    )
    one_sided: bool = Field(
        _CHANGE["one_sided"].default, description="Only a rise of the loss alarms; false: a fall, too."
    )
    importances: Annotated[list[ExplainerName], Field(min_length=1)] = Field(
        list(_CHANGE["importances"].default),
        description="What is compared before and after: pfi, sage or both; the sentence speaks of the first.",
    )
    loss: str | None = Field(
        None,
        description="Loss of the importances; by default as for the explainers. Verdicts rest on brier, zero_one or "
        "absolute.",
    )
    n_permutations: PositiveInt = Field(
        _CHANGE["n_permutations"].default, description="Permutations per feature that are averaged."
    )
    n_samples: PositiveInt = Field(_CHANGE["n_samples"].default, description="Draws per coalition, of sage alone.")
    margin: Annotated[float, Field(ge=0)] = Field(
        _CHANGE["margin"].default,
        description="Of versions: share of the total importance that a feature's change has to exceed.",
    )
    batch_size: PositiveInt | None = Field(
        None,
        description="Observations that the reference is asked for at once; 32 where the model predicts many at once, "
        "else 1.",
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | None) -> str | None:
        return value if value is None else one_of(value, LOSS_NAMES)

    @field_validator("detector")
    @classmethod
    def _known_detector(cls, value: str | None) -> str | None:
        return value if value is None else one_of(value, DETECTOR_NAMES)

    def model_post_init(self, _context: Any) -> None:
        """Refuse what the change explainer refuses whatever the model: detector parameters that River chokes on."""
        parameters = {**self.model_dump(), "loss": None, "distance": None}
        if (like := repr(parameters)) in _CHECKED:
            return
        try:
            ChangeExplainer(NoChangeClassifier(), **parameters)
        except ExplainerError as error:
            raise ValueError(str(error)) from None
        _CHECKED.add(like)


class ExplainConfig(Section):
    """How much is spent on explaining. What is not explained is still predicted, learnt and stored to draw from."""

    budget: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="Share of the time of the model's observations that explaining them may take, between 0 and 1: "
        "every k-th is explained, k from 1 to 64 by what was measured up to the last checkpoint. null: no budget.",
    )
    every: PositiveInt | None = Field(
        None, description="Every so many observations one is explained, whatever it takes; instead of a budget."
    )
    max_lag: PositiveInt = Field(
        10_000, description="With a budget: fewer observations are explained while more than so many wait."
    )
    feature_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default_of("feature_share"),
        description="Of pfi: share of the features that is evaluated per observation, above 0 up to 1.",
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> ExplainConfig:
        if self.budget is not None and self.every is not None:
            raise ValueError("give either `budget` (a share of the time) or `every` (a number of observations)")
        return self

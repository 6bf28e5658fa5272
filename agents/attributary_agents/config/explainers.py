"""What the configuration says of explainers: of importance, of change, and how much is spent on them.

The parameters are those of the explainers in `attributary_explainers`: their signatures declare them, with defaults.
"""

from __future__ import annotations

from inspect import Parameter, signature
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
    IncrementalPFI,
    IncrementalSAGE,
    RemovalExplainer,
)

from .section import Alpha, PositiveInt, Section, one_of

ExplainerName = Literal["pfi", "sage"]

EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}
"""The explainer of each name."""


def parameters_of(explainer: type[RemovalExplainer]) -> dict[str, Parameter]:
    """Return the parameters that the explainer takes, those of its base classes included, by name."""
    found: dict[str, Parameter] = {}
    for kind in explainer.__mro__:
        if "__init__" in vars(kind) and kind is not object:
            found = {**signature(kind).parameters, **found}
    return found


def default_of(parameter: str) -> Any:
    """Return the default of an explainer's parameter: the one that the first explainer with it declares."""
    return next(
        declared[parameter].default for declared in map(parameters_of, EXPLAINERS.values()) if parameter in declared
    )


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


class ChangeConfig(Section):
    """Explanation of model change."""

    window: Annotated[int, Field(ge=2)] = Field(1000, description="Observations in each of the two data sets (K).")
    threshold: Annotated[float, Field(ge=0)] = Field(0.3, description="Expected discrepancy to exceed (tau).")
    detector: str | None = Field(
        "adwin", description="Drift detector on the model's error; null: the discrepancy alone raises alarms."
    )
    detector_params: dict[str, Any] = Field(
        default_factory=dict, description="Of the detector; ADWIN's delta, 0.025 by default: larger alarms more."
    )
    signal: Literal["zero_one", "loss"] | None = Field(None, description="What the detector reads.")
    watch_discrepancy: bool = Field(
        True,
        description="Whether the discrepancy, observed all the time, raises alarms of its own: slow change, of which "
        "no detector tells.",
    )
    max_restarts: Annotated[int, Field(ge=0)] = Field(
        1, description="How often a further alarm starts the collection of data again; 0 as in the paper."
    )
    distance: Literal["label", "probability", "number"] | None = Field(None, description="What is compared.")
    importances: Annotated[list[ExplainerName], Field(min_length=1)] = Field(
        ["pfi"], description="What is compared before and after: pfi, sage or both; the sentence speaks of the first."
    )
    loss: str | None = Field(
        None,
        description="Loss of the importances; for a classifier zero_one by default, with sage brier (expected_zero_one "
        "where there are no probabilities).",
    )
    n_permutations: PositiveInt = Field(1, description="Permutations per feature that are averaged.")
    n_samples: PositiveInt = Field(4, description="Draws per coalition, of sage alone.")
    min_observations: PositiveInt | None = Field(
        None, description="Observations before the first reference is taken; window where it is not given, never less."
    )
    cooldown: Annotated[int, Field(ge=0)] = Field(
        0, description="Observations after an explanation or a rejected alarm in which no alarm is taken."
    )
    batch_size: PositiveInt | None = Field(
        None,
        description="The reference predicts so many observations at once, so the discrepancy is late by so many; 32 "
        "where the model predicts many at once, else 1.",
    )
    explain_data: bool = Field(
        False,
        description="Also explain an alarm within the threshold where the reference's importances have changed with "
        "the data: for models that do not learn.",
    )

    @model_validator(mode="before")
    @classmethod
    def _adwin_s_delta(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("detector", "adwin") == "adwin" and "detector_params" not in data:
            return {**data, "detector_params": {"delta": 0.025}}
        return data

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
        try:
            ChangeExplainer(NoChangeClassifier(), **{**self.model_dump(), "loss": None, "distance": None})
        except ExplainerError as error:
            raise ValueError(str(error)) from None


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

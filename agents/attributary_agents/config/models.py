"""What the configuration says of one model: how it is made, explained and published."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from river.dummy import NoChangeClassifier

from attributary_explainers import (
    DETECTOR_NAMES,
    LOSS_NAMES,
    MISSING_NAMES,
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ChangeExplainer,
    ExplainerError,
)
from attributary_topics import FEATURE_TYPES

PositiveInt = Annotated[int, Field(ge=1)]
ExplainerName = Literal["pfi", "sage"]
Alpha = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StepConfig(Section):
    """One class and its arguments: a model, or a step of a pipeline."""

    class_: str = Field(alias="class", description="Dotted path of a class, such as river.forest.ARFClassifier.")
    params: dict[str, Any] = Field(default_factory=dict, description="Arguments of the class.")


Pipeline = Annotated[list[StepConfig], Field(min_length=1)]


class ExplainerConfig(Section):
    """One incremental explainer."""

    n_samples: PositiveInt = Field(5, description="Draws per feature (pfi) or coalition (sage). Cost is proportional.")
    removal: str = Field(
        "interventional",
        description="Where removed features take their values: interventional (one stored observation for all), "
        "product (one for each), observational (given the features that are kept, by a tree per feature).",
    )
    reservoir: str = Field(
        "geometric",
        description="uniform remembers for ever, geometric favours the recent, sliding_window forgets all else.",
    )
    reservoir_size: PositiveInt = Field(100, description="Observations that replacements are drawn from.")
    sampling: str = Field(
        "stratified", description="stratified spreads draws over the reservoir, independent draws as the papers do."
    )
    alpha: Alpha | None = Field(None, description="Smoothing; the model's alpha where it is not given.")
    n_permutations: PositiveInt | None = Field(None, description="Of sage only: per observation, 1 by default.")
    bias_correction: bool | None = Field(None, description="Of sage only: of the bias of few draws, true by default.")

    @field_validator("removal", "reservoir", "sampling")
    @classmethod
    def _known(cls, value: str, info: ValidationInfo) -> str:
        names = {"removal": REMOVAL_NAMES, "reservoir": RESERVOIR_NAMES, "sampling": SAMPLING_NAMES}
        return _one_of(value, names[str(info.field_name)])

    def of_sage(self) -> dict[str, Any]:
        """The arguments that only sage has, where they are given."""
        own = {"n_permutations": self.n_permutations, "bias_correction": self.bias_correction}
        return {name: value for name, value in own.items() if value is not None}


def _default_explainers() -> dict[ExplainerName, ExplainerConfig]:
    return {"pfi": ExplainerConfig()}


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
        None, description="Loss of the importances; for a classifier zero_one by default, with sage brier."
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
        return value if value is None else _one_of(value, LOSS_NAMES)

    @field_validator("detector")
    @classmethod
    def _known_detector(cls, value: str | None) -> str | None:
        return value if value is None else _one_of(value, DETECTOR_NAMES)

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
        1.0, description="Of pfi: share of the features that is evaluated per observation, above 0 up to 1."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> ExplainConfig:
        if self.budget is not None and self.every is not None:
            raise ValueError("give either `budget` (a share of the time) or `every` (a number of observations)")
        return self


class PublishConfig(Section):
    """When importance events are sent. Counted in observations, so that a replay sends the same ones."""

    every: PositiveInt = Field(500, description="An event per explainer at every so many observations of the model.")
    material_shift: Annotated[float, Field(gt=0, le=1)] = Field(
        0.2, description="Also when this share of importance has moved since the last event."
    )
    min_observations: PositiveInt = Field(200, description="No event on material change before so many observations.")
    reference_after: PositiveInt = Field(
        2000, description="Observations until the reference for shift and NDCG is taken, and after a model change."
    )


class ModelSettings(Section):
    """What models can have in common: the section `defaults`, and part of each model."""

    version: str = Field(
        "1", min_length=1, description="Version of the model. A new one takes over, explained against the last."
    )
    learn: bool = Field(True, description="Whether the model learns from each observation (false: redeployed models).")
    missing: str | dict[str, Any] = Field(
        "value",
        description="What null means in x. value: a value as any other; absent: the feature is not there; skip: the "
        "observation is not explained; or feature to the value that takes its place.",
    )
    max_features: PositiveInt = Field(
        500,
        description="Where features are not declared: features in one observation, and features known at a time. More "
        "go to the dead letters: what explaining costs, in time and in state, grows with them.",
    )
    max_text: PositiveInt = Field(
        10_000, description="Characters of text in one observation; more go to the dead letters: many are stored."
    )
    loss: str | None = Field(None, description="cross_entropy, brier, zero_one, squared, absolute or score.")
    alpha: Alpha = Field(0.001, description="Smoothing: larger follows change faster and is noisier.")
    seed: int = Field(42, description="Of the explainers' generators, together with the model id.")
    explainers: dict[ExplainerName, ExplainerConfig] = Field(default_factory=_default_explainers)
    change: ChangeConfig | None = Field(
        default_factory=ChangeConfig,
        description="null: changes are not explained.",
    )
    explain: ExplainConfig = Field(default_factory=ExplainConfig)
    publish: PublishConfig = Field(default_factory=PublishConfig)
    any_river: bool = Field(
        False, description="Read a state that another minor release of River has stored: after a trial."
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | None) -> str | None:
        return value if value is None else _one_of(value, LOSS_NAMES)

    @field_validator("missing")
    @classmethod
    def _known_policy(cls, value: str | dict[str, Any]) -> str | dict[str, Any]:
        return _one_of(value, MISSING_NAMES) if isinstance(value, str) else value

    @field_validator("explainers")
    @classmethod
    def _sage_only(cls, value: dict[ExplainerName, ExplainerConfig]) -> dict[ExplainerName, ExplainerConfig]:
        for name, explainer in value.items():
            if name != "sage" and explainer.of_sage():
                raise ValueError(f"{name} has no {' or '.join(explainer.of_sage())}: only sage has")
        return value


class ModelConfig(ModelSettings):
    """One model: how it is made, and how it is explained."""

    model: StepConfig | Pipeline | None = Field(None, description="A class, or the steps of a pipeline.")
    factory: str | None = Field(None, description="module:function that returns the model, instead of `model`.")
    features: dict[str, str] | None = Field(
        None, description="Feature to number, category, boolean or any: all needed, no others. Without it: any."
    )
    groups: dict[str, list[str]] = Field(default_factory=dict, description="Group name to features removed together.")

    @field_validator("features")
    @classmethod
    def _known_types(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, kind in (value or {}).items():
            if kind not in FEATURE_TYPES:
                raise ValueError(f"{name}: expected one of {', '.join(sorted(FEATURE_TYPES))}, got {kind!r}")
        return value

    def model_post_init(self, _context: Any) -> None:
        """Exactly one way to make the model."""
        if (self.model is None) == (self.factory is None):
            raise ValueError("give either `model` (a class, or steps) or `factory` (module:function)")

    @property
    def spec(self) -> dict[str, Any]:
        """How the model is made, in the form of `Deployment.spec`."""
        if self.factory is not None:
            return {"factory": self.factory}
        return self.model_dump(mode="json", by_alias=True, include={"model"})


_WHOLE = ("detector_params", "missing")
"""Settings that replace a default as a whole: half of one detector's parameters are no use to another."""


def with_defaults(own: Any, defaults: Any) -> Any:
    """A model's own settings over the defaults: sections are merged, everything else of its own wins.

    Examples
    --------
    >>> with_defaults({"change": {"window": 500}}, {"alpha": 0.01, "change": {"window": 100, "cooldown": 50}})
    {'alpha': 0.01, 'change': {'window': 500, 'cooldown': 50}}
    """
    if not (isinstance(own, dict) and isinstance(defaults, dict)):
        return own
    merged = dict(defaults)
    if "detector" in own:
        merged.pop("detector_params", None)  # they belong to the default's detector
    for name, instead in (("budget", "every"), ("every", "budget")):
        if name in own:
            merged.pop(instead, None)  # in the section `explain`, the only one that has them both
    for name, value in own.items():
        merged[name] = with_defaults(value, merged[name]) if name in merged and name not in _WHOLE else value
    return merged


def _one_of(value: str, choices: Any) -> str:
    if value not in choices:
        raise ValueError(f"expected one of {', '.join(sorted(choices))}")
    return value

"""What the configuration says of one model: how it is made, explained and published."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import Field, field_validator

from attributary_explainers import LOSS_NAMES, MISSING_NAMES, QUALITY_NAMES, known_metric
from attributary_topics import FEATURE_TYPES

from .explainers import ChangeConfig, ExplainConfig, ExplainerConfig, ExplainerName, default_of
from .section import Alpha, PositiveInt, Section, one_of


class StepConfig(Section):
    """One class and its arguments: a model, or a step of a pipeline."""

    class_: str = Field(alias="class", description="Dotted path of a class, such as river.forest.ARFClassifier.")
    params: dict[str, Any] = Field(default_factory=dict, description="Arguments of the class.")


Pipeline = Annotated[list[StepConfig], Field(min_length=1)]


def _default_explainers() -> dict[ExplainerName, ExplainerConfig]:
    return {"pfi": ExplainerConfig()}


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
        default_of("missing"),
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
    loss: str | None = Field(
        None,
        description=f"{', '.join(LOSS_NAMES[:-1])} or {LOSS_NAMES[-1]}; brier by default for a classifier, "
        "expected_zero_one for one without probabilities, squared or score for other models.",
    )
    quality: list[str] | None = Field(
        None,
        description=f"Metrics of River that are published beside the loss, of {', '.join(QUALITY_NAMES)}; accuracy and "
        "roc_auc by default for a classifier, accuracy for one without probabilities, mae and r2 for a regressor. "
        "[]: none. f1, precision, recall, jaccard, mcc and roc_auc are of two classes; the greater label is positive.",
    )
    alpha: Alpha = Field(default_of("alpha"), description="Smoothing: larger follows change faster and is noisier.")
    seed: int = Field(42, description="Of the explainers' generators, together with the model id.")
    explainers: dict[ExplainerName, ExplainerConfig] = Field(default_factory=_default_explainers)
    change: ChangeConfig | None = Field(
        default_factory=ChangeConfig,
        description="null: changes are not explained.",
    )
    watch_loss: bool = Field(
        True, description="Whether lasting shifts of the loss are told: that the model became worse, and since when."
    )
    explain: ExplainConfig = Field(default_factory=ExplainConfig)
    publish: PublishConfig = Field(default_factory=PublishConfig)
    any_river: bool = Field(
        False, description="Read a state that another minor release of River has stored: after a trial."
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | None) -> str | None:
        return value if value is None else one_of(value, LOSS_NAMES)

    @field_validator("quality")
    @classmethod
    def _known_metrics(cls, value: list[str] | None) -> list[str] | None:
        return value if value is None else [known_metric(name) for name in value]

    @field_validator("missing")
    @classmethod
    def _known_policy(cls, value: str | dict[str, Any]) -> str | dict[str, Any]:
        return one_of(value, MISSING_NAMES) if isinstance(value, str) else value

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
    bounds: dict[str, tuple[float | None, float | None]] = Field(
        default_factory=dict,
        description="Feature to [least, greatest] of its numbers, null for no bound; `*`: every other feature. An "
        "observation with a number outside goes to the dead letters.",
    )
    clip: bool = Field(False, description="Numbers outside their bounds become the nearest bound instead.")
    groups: dict[str, list[str]] = Field(default_factory=dict, description="Group name to features removed together.")

    @field_validator("features")
    @classmethod
    def _known_types(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, kind in (value or {}).items():
            if kind not in FEATURE_TYPES:
                raise ValueError(f"{name}: expected one of {', '.join(sorted(FEATURE_TYPES))}, got {kind!r}")
        return value

    @field_validator("bounds")
    @classmethod
    def _in_order(
        cls, value: dict[str, tuple[float | None, float | None]]
    ) -> dict[str, tuple[float | None, float | None]]:
        for name, (low, high) in value.items():
            if not all(bound is None or math.isfinite(bound) for bound in (low, high)):
                raise ValueError(f"{name}: expected finite numbers or null, got {[low, high]}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"{name}: expected [least, greatest], got {[low, high]}")
        return value

    def model_post_init(self, _context: Any) -> None:
        """Refuse a model without exactly one way to make it, and clipping without bounds."""
        if self.clip and not self.bounds:
            raise ValueError("`clip: true` needs `bounds`")
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
    """Return a model's own settings over the defaults: sections are merged, everything else of its own wins.

    Examples
    --------
    >>> with_defaults({"change": {"window": 500}}, {"alpha": 0.01, "change": {"window": 100, "margin": 0.1}})
    {'alpha': 0.01, 'change': {'window': 500, 'margin': 0.1}}
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

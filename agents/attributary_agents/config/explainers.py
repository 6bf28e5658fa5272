"""Sections for explainers of importance and change, and their budget.

The parameters are those of the explainers in `attributary_explainers`: their signatures declare them, with defaults.
"""

from __future__ import annotations

from inspect import signature
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)
from river.dummy import NoChangeClassifier

from attributary_explainers import (
    DETECTOR_NAMES,
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    ChangeExplainer,
    ExplainerError,
    IncrementalPDP,
    InvalidParameterError,
    as_loss,
)
from attributary_explainers.monitor.settings import default_of

from .section import Alpha, PositiveInt, Section, one_of

RemovalName = Literal["pfi", "sage"]

MDI, PDP = "mdi", "pdp"
"""Names of the explainers that remove nothing."""


def known_loss(value: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    """Return a configured loss, or raise ValueError."""
    try:
        if value is not None:
            as_loss(value)
    except InvalidParameterError as error:
        raise ValueError(str(error).replace("loss must be", "expected", 1)) from None
    return value


class ExplainerConfig(Section):
    """One incremental explainer."""

    n_samples: PositiveInt = Field(
        default_of("n_samples"), description="Draws per feature (pfi) or coalition (sage). Cost is proportional."
    )
    removal: Annotated[str, one_of(REMOVAL_NAMES)] = Field(
        default_of("removal"),
        description="Where removed features take their values: interventional (one stored observation for all), "
        "product (one for each), observational (shifted to fit the features that are kept), "
        "observational-trees (given these, by a tree per feature, as in the iSAGE paper).",
    )
    reservoir: Annotated[str, one_of(RESERVOIR_NAMES)] = Field(
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
    sampling: Annotated[str, one_of(SAMPLING_NAMES)] = Field(
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

    @model_validator(mode="after")
    def _fits_the_reservoir(self) -> Self:
        if self.reservoir != "lagged" and (foreign := [n for n in ("gap", "reach") if getattr(self, n) is not None]):
            raise ValueError(f"the reservoir {self.reservoir} has no {' or '.join(foreign)}: only lagged has")
        return self

    def of_sage(self) -> dict[str, Any]:
        """Return the arguments that only sage has, where they are given."""
        own = {"n_permutations": self.n_permutations, "bias_correction": self.bias_correction}
        return {name: value for name, value in own.items() if value is not None}


class MdiConfig(Section):
    """Mean decrease in impurity, read off River's Hoeffding trees and forests of them; nothing has to be said of it."""


_PDP = signature(IncrementalPDP).parameters

MOST_CURVES = 50
"""Features whose partial dependence is followed at most: each costs evaluations of the model at every observation."""


class PdpConfig(Section):
    """Partial dependence: how the mean prediction depends on one feature."""

    features: Annotated[list[str], Field(min_length=1, max_length=MOST_CURVES)] | None = Field(
        None,
        description="Features whose curves are followed. null: the most important ones by the first of pfi and sage "
        "that is configured, chosen anew with each publication; without either the first ones of an observation.",
    )
    max_features: Annotated[int, Field(ge=1, le=MOST_CURVES)] = Field(
        5, description="So many curves, where `features` names none. Cost is proportional."
    )
    grid_size: Annotated[int, Field(ge=2, le=100)] = Field(
        _PDP["grid_size"].default, description="Points of a curve, or categories, at most. Cost is proportional."
    )
    label: str | int | float | bool | None = Field(
        None,
        description="Class whose probability is followed. null: the larger of two classes (True, 1), of more the one "
        "that is most probable when following begins.",
    )
    categorical: list[str] = Field(
        list(_PDP["categorical"].default), description="Features that are categories although their values are numbers."
    )
    alpha: Alpha | None = Field(None, description="Smoothing; the model's alpha where it is not given.")
    window: PositiveInt = Field(
        _PDP["window"].default,
        description="Observations that are asked about together, and values that a grid is made of; 2.25 times so many "
        "rows are kept. Larger asks less often about more rows, at the same cost.",
    )
    every: PositiveInt | None = Field(
        None,
        description="Observations of the model between two publications; ten times `publish.every` where it is not "
        "given. The first is as soon as there are curves.",
    )
    publish_values: bool = Field(
        True,
        description="false: features whose values are categories are neither followed nor published, so that no text "
        "of an observation is in an event. The points of numbers are observed values, too.",
    )

    @model_validator(mode="after")
    def _window_for_the_grid(self) -> Self:
        if self.window < self.grid_size:
            raise ValueError(f"`window` has to be at least `grid_size` ({self.grid_size}), got {self.window}")
        return self


class ExplainersConfig(Section):
    """The explainers of a model by their names; null turns off what `defaults` turn on."""

    pfi: ExplainerConfig | None = Field(None, description="Permutation feature importance.")
    sage: ExplainerConfig | None = Field(None, description="SAGE values: shares of what all features are worth.")
    mdi: MdiConfig | None = Field(None, description="Mean decrease in impurity: of Hoeffding trees and their forests.")
    pdp: PdpConfig | None = Field(None, description="Partial dependence. Its events hold values of features.")
    _order: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="wrap")
    @classmethod
    def _keep_order(cls, value: Any, made: ModelWrapValidatorHandler[Self]) -> Self:
        found = made(value)
        if isinstance(value, dict):
            found._order = tuple(name for name in value if getattr(found, name, None) is not None)
        return found

    @model_validator(mode="after")
    def _sage_only(self) -> Self:
        if self.pfi is not None and (foreign := self.pfi.of_sage()):
            raise ValueError(f"pfi has no {' or '.join(foreign)}: only sage has")
        return self

    @model_serializer(mode="wrap")
    def _in_order(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data = dump(self)
        # Null, too: what is dumped has to turn off what it was without.
        return {name: data[name] for name in dict.fromkeys((*self._order, *data))}

    @property
    def by_removal(self) -> dict[str, ExplainerConfig]:
        """The explainers by removal, in the configured order."""
        of_each = {"pfi": self.pfi, "sage": self.sage}
        return {name: one for name in self._order if (one := of_each.get(name)) is not None}

    @property
    def of_importance(self) -> tuple[str, ...]:
        """Names of the explainers that publish importances, in configured order."""
        return tuple(name for name in self._order if name != PDP)


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
    detector: Annotated[str, one_of(DETECTOR_NAMES)] | None = Field(
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
    importances: Annotated[list[RemovalName], Field(min_length=1)] = Field(
        list(_CHANGE["importances"].default),
        description="What is compared before and after: pfi, sage or both; the sentence speaks of the first.",
    )
    loss: str | dict[str, Any] | None = Field(
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
        description="Observations that the reference is asked for at once; 32 where the model predicts many "
        "rows at once, as by a fast path, else 1.",
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        return known_loss(value)

    def model_post_init(self, _context: Any) -> None:
        """Refuse detector parameters that no change explainer takes."""
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

"""Section for a model: how it is made, explained and published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, TypeAdapter, ValidationError, field_validator, model_validator

from attributary_explainers import LOSS_NAMES, MISSING_NAMES, QUALITY_NAMES, known_metric
from attributary_explainers.losses.statement import is_score
from attributary_explainers.monitor.joiner import Join
from attributary_explainers.monitor.settings import Holdout, PublishRule, Settings, default_of
from attributary_explainers.wording import did_you_mean
from attributary_topics import FEATURE_TYPES

from ..files.holdout import read_holdout
from .explainers import MDI, PDP, ChangeConfig, ExplainConfig, ExplainerConfig, ExplainersConfig, known_loss
from .mlflow import MlflowModel, Registered
from .section import Alpha, Duration, PositiveInt, Section, one_of
from .served import ServedConfig
from .steps import FactoryConfig, FileConfig, Pipeline, StepConfig

ANY_LABEL = "any"

LABEL_KINDS = ("boolean", "number", "text", ANY_LABEL)
"""What `label` of a model can be."""


_DETECTORS = "river.anomaly."
_OF_A_TARGET = ("GaussianScorer", "PredictiveAnomalyDetection", "StandardAbsoluteDeviation")
"""River's detectors whose score depends on a target, too."""


def _is_detector(model: Any) -> bool:
    """Return whether `model` ends in an unsupervised class of `river.anomaly`.

    Of a factory, a file and a class of the user's own nothing is known: there the mode is written.
    """
    if isinstance(model, list) and model:
        model = model[-1]
    path = model.get("class") if isinstance(model, dict) else None
    return isinstance(path, str) and path.startswith(_DETECTORS) and not path.endswith(_OF_A_TARGET)


def _default_explainers() -> ExplainersConfig:
    return ExplainersConfig.model_validate({"pfi": ExplainerConfig()})


_RULE = PublishRule()
_SETTINGS = Settings()


def _in_order(ends: tuple[float | None, float | None]) -> tuple[float | None, float | None]:
    low, high = ends
    if not all(bound is None or math.isfinite(bound) for bound in ends):
        raise ValueError(f"expected finite numbers or null, got {[low, high]}")
    if low is not None and high is not None and low > high:
        raise ValueError(f"expected [least, greatest], got {[low, high]}")
    return ends


Ends = Annotated[tuple[float | None, float | None], AfterValidator(_in_order)]
"""Least and greatest of a number; null for no bound."""


class PublishConfig(Section):
    """When importance events are sent. Counted in observations, so that a replay sends the same ones."""

    every: PositiveInt = Field(
        _RULE.every, description="An event per explainer at every so many observations of the model."
    )
    material_shift: Annotated[float, Field(gt=0, le=1)] = Field(
        _RULE.material_shift, description="Also when this share of importance has moved since the last event."
    )
    min_observations: PositiveInt = Field(
        _RULE.min_observations, description="No event on material change before so many observations."
    )
    reference_after: PositiveInt = Field(
        _RULE.reference_after,
        description="Observations until the reference for shift and NDCG is taken, and after a model change.",
    )


class WatchLossConfig(Section):
    """The hold-out that a model's loss is compared with."""

    reference: Path = Field(
        description="File with labelled rows that the model has not learnt: .csv, .tsv, .jsonl, .ndjson or .parquet."
    )
    target: str | None = Field(
        None,
        description="Its column with the label. null: the last one; lines of JSON are then {x: …, y: …}.",
    )


class ModelSettings(Section):
    """What models can have in common: the section `defaults`, and part of each model."""

    version: str = Field(
        "1", min_length=1, description="Version of the model. A new one takes over, explained against the last."
    )
    learn: bool = Field(
        _SETTINGS.learn, description="Whether the model learns from each observation (false: redeployed models)."
    )
    missing: Annotated[str, one_of(MISSING_NAMES)] | dict[str, Any] = Field(
        default_of("missing"),
        description="What null, NaN and a declared feature that is not in the record mean. absent: the feature is not "
        "there; skip: it is not there, and nothing of the observation is explained; value: the model is given null, "
        "which it has to ask for; or feature to the value that takes its place, and absent for all others.",
    )
    max_features: PositiveInt = Field(
        500,
        description="Where features are not declared: features in one observation, and features known at a time. More "
        "go to the dead letters: what explaining costs, in time and in state, grows with them.",
    )
    max_text: PositiveInt = Field(
        10_000, description="Characters of text in one observation; more go to the dead letters: many are stored."
    )
    max_labels: PositiveInt | None = Field(
        100,
        description="Of a classifier that learns: distinct labels. During 1000 observations half of them are "
        "taken on sight, later ones once they come again soon; others go to the dead letters, for each costs time at "
        "every observation. null: no bound.",
    )
    max_categories: PositiveInt | None = Field(
        100,
        description="Of a model that learns: distinct texts of a feature, taken as labels are. Others become the "
        "category __other__. Larger for encoders of zip codes, ids and the like; null: no bound.",
    )
    max_jump: Annotated[float, Field(ge=1)] | None = Field(
        20.0,
        description="A number beyond so many times the largest of its feature so far goes to the dead letters, once "
        "1000 values other than 0 are known, unless `bounds` names the feature; so does the label of a regressor, "
        "without `label_bounds`. Twenty among 1000 are a new range. null: none.",
    )
    loss: str | dict[str, Any] | None = Field(
        None,
        description=f"{', '.join(LOSS_NAMES)}, or of two classes {{cost: {{false_negative: …, false_positive: …}}}}, "
        "of which the key `positive` says what is to be found; brier by default for a classifier, "
        "expected_zero_one for one without probabilities, squared for a regressor, neg_score for an anomaly detector.",
    )
    quality: list[str] | None = Field(
        None,
        description=f"Metrics of River that are published beside the loss, of {', '.join(QUALITY_NAMES)}; accuracy and "
        "roc_auc by default for a classifier, accuracy for one without probabilities, mae and r2 for a regressor. "
        "[]: none. f1, precision, recall, jaccard, mcc, roc_auc and pr_auc are of two classes. So are precision_at_1% "
        "and recall_at_1%, of the one per cent with the highest scores, and precision_at_0.9 and recall_at_0.9, of "
        "probabilities from 0.9 on.",
    )
    positive: bool | int | float | str | None = Field(
        None,
        description="The class that counts as positive in the metrics of two classes, and in a loss by costs that "
        "names none itself. null: the greater one in order, which of fraud and ok is ok.",
    )
    alpha: Alpha = Field(default_of("alpha"), description="Smoothing: larger follows change faster and is noisier.")
    seed: int = Field(
        _SETTINGS.seed,
        description="Of the explainers' generators, together with the model id: a replay draws what the worker drew. "
        "In the library the default is None, which draws anew.",
    )
    explainers: ExplainersConfig = Field(default_factory=_default_explainers)
    change: ChangeConfig | None = Field(
        default_factory=ChangeConfig,
        description="null: changes are not explained.",
    )
    watch_loss: bool | WatchLossConfig = Field(
        _SETTINGS.watch_loss,
        description="Whether lasting shifts of the loss are told: that the model became worse, and since when. "
        "{reference: FILE}: compared with these rows, on which the model was validated, from the first label on.",
    )
    watch_inputs: bool = Field(
        _SETTINGS.watch_inputs,
        description="Whether broken values of features are told: missing, stuck, in another unit. false: incidents "
        "have no value of a record.",
    )
    explain: ExplainConfig = Field(default_factory=ExplainConfig)
    publish: PublishConfig = Field(default_factory=PublishConfig)
    any_river: bool = Field(
        False, description="Read a state that another minor release of River has stored: after a trial."
    )

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
        return known_loss(value)

    @field_validator("quality")
    @classmethod
    def _known_metrics(cls, value: list[str] | None) -> list[str] | None:
        return value if value is None else [known_metric(name) for name in value]


class ModelConfig(ModelSettings):
    """One model: how it is made, and how it is explained."""

    model: StepConfig | FactoryConfig | FileConfig | MlflowModel | ServedConfig | Pipeline | None = Field(
        None,
        description="A class, the steps of a pipeline, a factory (a function that returns the model), a file with a "
        "trained model, a model of MLflow, or the address of a model that is served.",
    )
    factory: str | None = Field(None, description="Short for `model: {factory: module:function}`.")
    features: dict[str, Annotated[str, one_of(FEATURE_TYPES)]] | None = Field(
        None, description="Feature to number, category, boolean or any: no others are taken. Without it: any."
    )
    bounds: dict[str, Ends] = Field(
        default_factory=dict,
        description="Feature to [least, greatest] of its numbers, null for no bound; `*`: every other feature. An "
        "observation with a number outside goes to the dead letters.",
    )
    label: Annotated[str, one_of(LABEL_KINDS)] | None = Field(
        None,
        description="boolean, number or text: the kind of all labels; others go to the dead letters. null: that of the "
        "first labels. any: whatever comes; many models raise for ever once they have learnt labels of two kinds.",
    )
    label_bounds: Ends | None = Field(
        None,
        description="[least, greatest] of a label that is a number, null for no bound; others go to the dead letters. "
        "`max_jump` then leaves the labels alone.",
    )
    clip: bool = Field(False, description="Numbers of features outside their bounds become the nearest bound instead.")
    groups: dict[str, list[str]] = Field(default_factory=dict, description="Group name to features removed together.")
    sharded: bool = Field(
        False,
        description="Whether the observations may lie on any partition, each of which explains its share: only with "
        "`learn: false`. The merged importance is published. Changes, quality and shifts are not looked for: `change`, "
        "`watch_loss` and `quality` are off.",
    )
    mode: Literal["labelled", "unlabelled", "mirror", "anomaly"] = Field(
        "labelled",
        description="labelled: each observation has a label, in it or later. unlabelled: none has, and what the model "
        "relies on is told by its own predictions. mirror: the model learns what another one, whose predictions "
        "`y_pred` are logged, predicts, and is explained in its place. anomaly: the model is an anomaly detector or an "
        "autoencoder, which learns without labels, and its score is explained; so it is where `model` ends in a class "
        "of river.anomaly and nothing is said.",
    )
    fidelity: Annotated[float, Field(gt=0, le=1)] = Field(
        0.8, description="Of a mirror: it is doubted where it explains less of the logged predictions."
    )
    max_models: PositiveInt | None = Field(
        None,
        description="Of a template, a model id with *, ? or [: models at most, an equal part of them on each "
        "partition. Observations of further ids go to the dead letters. null: 20000.",
    )
    idle: Duration | None = Field(
        None,
        description="Of a template: a model without an observation for so long, by the times of its partition's "
        "records, is stored and leaves the memory until its next one. Seconds, or 60s, 5m, 3h, 1d. null: 1d.",
    )
    _join: Join | None = PrivateAttr(None)
    _allowed: tuple[str, ...] = PrivateAttr(())
    _own_types: frozenset[str] | None = PrivateAttr(None)

    @property
    def allowed(self) -> tuple[str, ...]:
        """Dotted names that a stored state may hold besides the configured ones."""
        return self._allowed

    @property
    def own_types(self) -> frozenset[str] | None:
        """Names in the pickle of the model as made here, or None if not read yet."""
        return self._own_types

    @property
    def join(self) -> Join | None:
        """How its observations wait for their labels; None where they come whole."""
        return self._join

    def take_join(self, join: Join | None) -> None:
        """Take over the model's settings in `sources` and `labels`."""
        self._join = join

    def take(self, allowed: Sequence[str]) -> None:
        """Take over other sections' settings for stored states."""
        self._allowed = tuple(allowed)

    def note_own_types(self, names: frozenset[str]) -> None:
        """Keep the names in the pickle of the model as made here."""
        self._own_types = names

    @model_validator(mode="before")
    @classmethod
    def _turn_off_for_shards(cls, data: Any) -> Any:
        """Turn off features that a shard cannot offer, unless they are configured."""
        if isinstance(data, dict) and _is_true(data.get("sharded")):
            return {"change": None, "watch_loss": False, "quality": [], **data}
        return data

    @model_validator(mode="before")
    @classmethod
    def _leave_served_as_it_is(cls, data: Any) -> Any:
        """Let a served model not learn, where nothing is said of it."""
        given = data.get("model") if isinstance(data, dict) else None
        is_served = isinstance(given, ServedConfig) or (isinstance(given, dict) and "served" in given)
        return {"learn": False, **data} if is_served else data

    @model_validator(mode="before")
    @classmethod
    def _turn_off_without_labels(cls, data: Any) -> Any:
        """Turn off features that need labels, unless they are configured."""
        if not isinstance(data, dict) or data.get("mode") != "unlabelled":
            return data
        data = {"learn": False, "watch_loss": False, "quality": [], **data}
        if isinstance(change := data.get("change", {}), dict):
            data["change"] = {"detector": None, **change}
        return data

    @model_validator(mode="before")
    @classmethod
    def _find_detector(cls, data: Any) -> Any:
        """Set the mode of a River anomaly detector; turn off use of labels."""
        if not isinstance(data, dict):
            return data
        if "mode" not in data and _is_detector(data.get("model")):
            data = {"mode": "anomaly", **data}
        if data.get("mode") != "anomaly":
            return data
        is_fixed = "learn" in data and not _is_true(data["learn"])
        data = {"watch_loss": False, "quality": [], "change": {} if is_fixed else None, **data}
        if isinstance(change := data["change"], dict):
            data["change"] = {"detector": None, **change}
        return data

    def model_post_init(self, _context: Any) -> None:
        """Refuse clipping without bounds, and several or no ways to make a model."""
        self._refuse_undeclared()
        if self.clip and not self.bounds:
            raise ValueError("`clip: true` needs `bounds`")
        if self.sharded:
            self._refuse_of_whole()
        if self.mode == "unlabelled":
            self._refuse_of_labels()
        if self.mode == "anomaly":
            self._refuse_of_losses()
        if not isinstance(self.watch_loss, bool) and self.learn:
            raise ValueError(
                "`watch_loss: {reference: …}` needs `learn: false`: a model that learns leaves every hold-out behind"
            )
        if self.mode == "mirror" and not self.learn:
            raise ValueError("`mode: mirror` needs `learn: true`: the mirror learns what the other model predicts")
        if isinstance(self.model, ServedConfig):
            if self.learn:
                raise ValueError("a model that is served does not learn here: `learn: false`, or leave it out")
            self.model.take_features(self.features)
        if (self.model is None) == (self.factory is None):
            raise ValueError(
                "give either `model` ({class: …, params: …}, a list of such steps, {factory: module:function, "
                "params: …}, {file: …, sha256: …}, {mlflow: models:/NAME@ALIAS} or {served: http://…}) or, in short, "
                "`factory`"
            )

    def _refuse_of_whole(self) -> None:
        """Refuse features of a sharded model that need all observations in order."""
        if self.learn:
            raise ValueError(
                "`sharded: true` needs `learn: false`: a model that learns has to be given all observations, in one "
                "order, and so on one partition"
            )
        wanted = {"change": self.change is not None, "watch_loss": self.watch_loss, "quality": bool(self.quality)}
        off = {"change": "null", "watch_loss": "false", "quality": "[]"}
        for key, is_wanted in wanted.items():
            if is_wanted:
                raise ValueError(
                    f"`sharded: true` needs `{key}: {off[key]}`: a shard sees a part of the observations, and what it "
                    "tells would look as if it were of the whole model"
                )

        explainers = self.explainers
        if beside := [name for name in (MDI, PDP) if getattr(explainers, name) is not None]:
            raise ValueError(
                f"`sharded: true` has no {' and no '.join(beside)}: what shards say of them cannot be merged; leave it "
                f"out, or write `explainers: {{{', '.join(f'{name}: null' for name in beside)}}}` where `defaults` "
                "turn it on"
            )

    def _refuse_of_labels(self) -> None:
        """Refuse features that need labels for a model without labels."""
        wanted = {
            "learn: false": self.learn,
            "watch_loss: false": self.watch_loss,
            "quality: []": bool(self.quality),
            "change.detector: null": self.change is not None and self.change.detector is not None,
        }
        for remedy, is_wanted in wanted.items():
            if is_wanted:
                raise ValueError(f"`mode: unlabelled` needs `{remedy}`: without labels there is no loss to go by")

    def _refuse_of_losses(self) -> None:
        """Refuse features that need predicted labels for an anomaly detector."""
        if self.loss is not None and not is_score(self.loss):
            raise ValueError(f"`loss: {self.loss}` needs labels, and an anomaly detector has a score: leave it out")
        wanted = {
            "watch_loss: false": self.watch_loss,
            "quality: []": bool(self.quality),
            "change: null": self.change is not None and self.learn,
            "change: {detector: null}": self.change is not None and not self.learn and self.change.detector is not None,
        }
        if refused := [f"`{remedy}`" for remedy, is_wanted in wanted.items() if is_wanted]:
            raise ValueError(
                f"`mode: anomaly` needs {' and '.join(refused)}: a score is not right or wrong without labels. Write "
                "that here, also where `defaults` say otherwise; or, for a detector whose observations have labels, "
                "which it does not read, `mode: labelled`"
            )

    def _refuse_undeclared(self) -> None:
        """Refuse a name that is not among the features, where they are declared."""
        if self.features is None:
            return
        named = {
            "bounds": [name for name in self.bounds if name != "*"],
            "missing": list(self.missing) if isinstance(self.missing, dict) else [],
            **{f"groups.{group}": members for group, members in self.groups.items()},
            "explainers.pdp.features": (self.explainers.pdp and self.explainers.pdp.features) or [],
        }
        for key, names in named.items():
            for name in names:
                if name not in self.features:
                    raise ValueError(f"{key}: {name!r} is not among `features`{did_you_mean(name, self.features)}")

    @property
    def _holdout(self) -> Holdout | None:
        """The hold-out's rows, read once.

        SourceError: the file cannot be read, or lacks features.
        """
        given = self.watch_loss
        if isinstance(given, bool):
            return None
        return read_holdout(given.reference, given.target, None if self.features is None else tuple(self.features))

    @property
    def settings(self) -> Settings:
        """The settings of the model's watches."""
        return Settings(
            learn=self.learn,
            mode=self.mode,
            missing=self.missing,
            loss=self.loss,
            quality=self.quality,
            positive=self.positive,
            alpha=self.alpha,
            seed=self.seed,
            explainers={name: one.model_dump(exclude_none=True) for name, one in self.explainers.by_removal.items()},
            change=None if self.change is None else self.change.model_dump(),
            watch_loss=bool(self.watch_loss),
            watch_inputs=self.watch_inputs,
            holdout=self._holdout,
            groups=self.groups,
            feature_share=self.explain.feature_share,
            publish=PublishRule(**self.publish.model_dump()),
            sharded=self.sharded,
        )

    @property
    def registered(self) -> Registered | None:
        """The model's name in MLflow's registry, or None.

        Which version of it the model is, the models topic says.
        """
        return self.model.registered if isinstance(self.model, MlflowModel) else None

    @property
    def has_labels(self) -> bool:
        """Whether the model learns from, or is compared with, a label.

        That may be its own label or another model's prediction.
        """
        return self.mode in ("labelled", "mirror")

    @property
    def spec(self) -> dict[str, Any]:
        """How the model is made, in the form of `Deployment.spec`."""
        if isinstance(self.model, FileConfig):
            return {"artefact": self.model.file, "sha256": self.model.sha256}
        if isinstance(self.model, MlflowModel):
            return {"mlflow": self.model.mlflow, **({} if self.registered else {"sha256": self.model.sha256})}
        if isinstance(self.model, ServedConfig):
            return {"model": self.model.spec}
        if isinstance(self.model, FactoryConfig):
            params = {"params": self.model.params} if self.model.params else {}
            return {"factory": self.model.factory, **params}
        if self.factory is not None:
            return {"factory": self.factory}
        return self.model_dump(mode="json", by_alias=True, include={"model"})


def _is_true(value: Any) -> bool:
    """Return whether a field will be true, also where it is still text."""
    try:
        return TypeAdapter(bool).validate_python(value)
    except ValidationError:  # which the field will say
        return False


_WHOLE = ("detector_params", "missing")
"""Settings that replace a default as a whole: half of one detector's parameters are no use to another."""


def with_defaults(own: Any, defaults: Any) -> Any:
    """Return a model's settings merged over the defaults, section by section.

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

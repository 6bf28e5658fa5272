"""Configuration: one YAML file, overridden by environment variables. Unknown keys are errors.

`ATTRIBUTARY_KAFKA__GROUP=blue` sets `kafka.group`; a value that is a list or an object is given as JSON.
Nothing has a default that hides a decision: models are always named.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from attributary_explainers import (
    DETECTOR_NAMES,
    LOSS_NAMES,
    MISSING_NAMES,
    REMOVAL_NAMES,
    RESERVOIR_NAMES,
    SAMPLING_NAMES,
    make_detector,
)
from attributary_topics import FEATURE_TYPES, InvalidRecordError, Topics, decode_model_id

from .errors import ConfigError

PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0)]
ExplainerName = Literal["pfi", "sage"]
Alpha = Annotated[float, Field(gt=0, le=1)]


class Section(BaseModel):
    """A part of the configuration."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaConfig(Section):
    """Where Kafka is, and what our part of it is called."""

    brokers: list[str] = Field(["localhost:9092"], min_length=1, description="Bootstrap servers, host:port.")
    group: str = Field(
        "attributary",
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Consumer group and Faust app id. The state's changelog topic is <group>-state-changelog.",
    )
    topic_prefix: str = Field(
        "attributary", pattern=r"^[A-Za-z0-9._-]{1,200}$", description="First part of every topic's name."
    )
    partitions: PositiveInt = Field(4, description="Partitions of the observations topic and of the state's changelog.")
    replication_factor: PositiveInt = Field(1, description="For `attributary topics create`.")
    instance_id: str | None = Field(None, description="Static group membership: name of this worker in the group.")
    session_timeout_s: PositiveFloat = Field(60.0, description="A worker silent for so long loses its partitions.")
    max_state_bytes: PositiveInt = Field(
        20_000_000, description="Largest stored state of one model: producer limit, and max.message.bytes of the topic."
    )

    @property
    def topics(self) -> Topics:
        """The topics' names."""
        return Topics(self.topic_prefix)

    @property
    def changelog(self) -> str:
        """The state table's changelog topic, as Faust names it."""
        return f"{self.group}-state-changelog"


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
    detector: str = Field("adwin", description="Drift detector on the model's error.")
    detector_params: dict[str, Any] = Field(
        default_factory=lambda: {"delta": 0.025}, description="Of the detector; ADWIN's delta: larger alarms more."
    )
    signal: Literal["zero_one", "loss"] | None = Field(None, description="What the detector reads.")
    distance: Literal["label", "probability", "number"] | None = Field(None, description="What is compared.")
    loss: str | None = Field(None, description="Loss of the importances; zero_one for a classifier by default.")
    n_permutations: PositiveInt = Field(1, description="Permutations per feature that are averaged.")

    @field_validator("loss")
    @classmethod
    def _known_loss(cls, value: str | None) -> str | None:
        return value if value is None else _one_of(value, LOSS_NAMES)

    @field_validator("detector")
    @classmethod
    def _known_detector(cls, value: str) -> str:
        return _one_of(value, DETECTOR_NAMES)

    def model_post_init(self, _context: Any) -> None:
        """Refuse detector parameters that River would accept and choke on."""
        make_detector(self.detector, self.detector_params)


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


class ModelConfig(Section):
    """One model: how it is made, and how it is explained."""

    version: str = Field("1", description="Version of the model. A new version starts afresh.")
    model: StepConfig | Pipeline | None = Field(None, description="A class, or the steps of a pipeline.")
    factory: str | None = Field(None, description="module:function that returns the model, instead of `model`.")
    learn: bool = Field(True, description="Whether the model learns from each observation (false: redeployed models).")
    features: dict[str, str] | None = Field(
        None, description="Feature to number, category, boolean or any: all needed, no others. Without it: any."
    )
    groups: dict[str, list[str]] = Field(default_factory=dict, description="Group name to features removed together.")
    missing: str | dict[str, Any] = Field(
        "value",
        description="What null means in x. value: a value as any other; absent: the feature is not there; skip: the "
        "observation is not explained; or feature to the value that takes its place.",
    )
    loss: str | None = Field(None, description="cross_entropy, brier, zero_one, squared, absolute or score.")
    alpha: Alpha = Field(0.001, description="Smoothing: larger follows change faster and is noisier.")
    seed: int = Field(42, description="Of the explainers' generators, together with the model id.")
    explainers: dict[ExplainerName, ExplainerConfig] = Field(default_factory=_default_explainers)
    change: ChangeConfig | None = Field(
        default_factory=ChangeConfig,
        description="null: changes are not explained.",
    )
    publish: PublishConfig = Field(default_factory=PublishConfig)

    @field_validator("features")
    @classmethod
    def _known_types(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name, kind in (value or {}).items():
            if kind not in FEATURE_TYPES:
                raise ValueError(f"{name}: expected one of {', '.join(sorted(FEATURE_TYPES))}, got {kind!r}")
        return value

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

    def model_post_init(self, _context: Any) -> None:
        """Exactly one way to make the model."""
        if (self.model is None) == (self.factory is None):
            raise ValueError("give either `model` (a class, or steps) or `factory` (module:function)")


class CheckpointConfig(Section):
    """When state is stored and offsets are committed, per partition."""

    interval_s: PositiveFloat = Field(10.0, description="At least so often while observations come.")
    max_observations: PositiveInt = Field(5000, description="And after so many observations.")


class WebConfig(Section):
    """/metrics, /livez and /readyz."""

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 in a container.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(6066, description="0 takes a free one and logs it.")
    stuck_after_s: PositiveFloat = Field(120.0, description="/livez fails when the worker has not moved for so long.")


class MetricsConfig(Section):
    """Limits on the number of series."""

    max_features: PositiveInt = Field(20, description="Features per model and explainer; the rest is __other__.")
    max_models: PositiveInt = Field(200, description="Models with series of their own; more are counted as dropped.")
    max_series: PositiveInt = Field(10_000, description="Series of features in all; further models are dropped.")


class LogConfig(Section):
    """Logs go to stderr."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least severity that is logged.")


class Config(BaseSettings):
    """The whole configuration. Read it with `load_config`."""

    model_config = SettingsConfigDict(
        env_prefix="ATTRIBUTARY_", env_nested_delimiter="__", extra="forbid", frozen=True, case_sensitive=False
    )

    kafka: KafkaConfig = Field(default_factory=KafkaConfig)
    models: dict[str, ModelConfig] = Field(min_length=1, description="Model id to model. The id is the records' key.")
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig)
    web: WebConfig = Field(default_factory=WebConfig)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    max_observation_bytes: PositiveInt = Field(1_000_000, description="Longer values go to the dead letters.")

    @field_validator("models")
    @classmethod
    def _ids(cls, value: dict[str, ModelConfig]) -> dict[str, ModelConfig]:
        for model_id in value:
            try:
                decode_model_id(model_id.encode())
            except InvalidRecordError as error:
                raise ValueError(f"model id {model_id!r}: {error}") from None
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, whose content is what the constructor is given."""
        return env_settings, init_settings


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses a key that is given twice: YAML would take the last and forget the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = sorted({str(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise yaml.YAMLError(f"key {', '.join(twice)} is given twice {node.start_mark}")
        return super().construct_mapping(node, deep)


def load_config(path: Path | None) -> Config:
    """Read the YAML file, apply the environment, check everything.

    Raises
    ------
    ConfigError
        The file cannot be read, is no YAML, or a key or value is wrong; every fault is named with its path.
    """
    data: Any = {}
    if path is not None:
        try:
            data = yaml.load(path.read_text(encoding="utf-8"), _UniqueKeyLoader) or {}
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}. See `attributary config example`") from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(data, dict):
            raise ConfigError(f"{path}: expected a mapping with the key `models`, got {type(data).__name__}")
    return parse_config(
        data, where=str(path) if path else "no configuration file given (--config, or ATTRIBUTARY_CONFIG)"
    )


def parse_config(data: dict[str, Any], where: str = "configuration") -> Config:
    """The configuration in `data`, overridden by the environment; see `load_config` for what is raised."""
    unknown = [name for name in os.environ if name.startswith("ATTRIBUTARY_") and not _is_known_variable(name)]
    if unknown:
        raise ConfigError(
            f"unknown environment variable {', '.join(sorted(unknown))}: see `attributary config example`"
        )
    # Names with an underscore are arguments of the settings library, which would take them.
    foreign = [key for key in data if not isinstance(key, str) or key.startswith("_")]
    if foreign:
        raise ConfigError(f"{where}: unknown key {', '.join(map(repr, foreign))}")
    try:
        return Config(**data)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors())
        raise ConfigError(f"{where}: {faults}") from None
    except ValueError as error:  # a message of ours out of model_post_init
        raise ConfigError(f"{where}: {error}") from None


# Read elsewhere: not settings, but how the process is started.
_OTHER_VARIABLES = {"ATTRIBUTARY_CONFIG", "ATTRIBUTARY_KAFKA_LIB"}


def _is_known_variable(name: str) -> bool:
    section = name.removeprefix("ATTRIBUTARY_").lower().split("__")[0]
    return name in _OTHER_VARIABLES or section in Config.model_fields


def _fault(fault: Any) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"unknown key {path!r}"
    if fault["type"] == "missing":
        return f"{path} is missing"
    message = fault["msg"].removeprefix("Value error, ")
    got = "" if isinstance(fault["input"], dict) else f", got {fault['input']!r}"
    return f"{path}: {message}{got}"


def _one_of(value: str, choices: Any) -> str:
    if value not in choices:
        raise ValueError(f"expected one of {', '.join(sorted(choices))}")
    return value


EXAMPLE = """\
# Every key and its default: attributary config schema
kafka:
  brokers: ["localhost:9092"]
  group: attributary
  topic_prefix: attributary
  partitions: 4
models:
  credit:                      # the model id: the key of its observations
    model:
      class: river.forest.ARFClassifier
      params: {n_models: 10, seed: 1}
    alpha: 0.002               # importance over a window of about 1000 observations
    explainers:
      pfi: {n_samples: 5}
      sage: {n_samples: 5}
    change: {window: 1000, threshold: 0.3, detector_params: {delta: 0.025}}
    publish: {every: 500}
web: {host: 127.0.0.1, port: 6066}
"""

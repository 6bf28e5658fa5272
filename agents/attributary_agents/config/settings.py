"""Schema of the configuration: sections, keys, meanings and defaults.

Nothing has a default that hides a decision: models are always named. Unknown keys are errors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from attributary_explainers.monitor.series_limits import Limits
from attributary_topics import InvalidRecordError, Topics, decode_model_id

from .attachment import check_attached, join_of
from .mlflow import MlflowConfig, MlflowModel
from .models import ModelConfig, ModelSettings, with_defaults
from .registry import RegistryConfig
from .section import PositiveFloat, PositiveInt, Section
from .security import SecurityConfig
from .served import ServedConfig, is_address
from .serving import ServeConfig
from .sources import LabelsConfig, Name, SourceConfig
from .state import StateConfig
from .steps import FileConfig
from .templates import MAX_MODELS, Finder, check_templates, example_of, is_template, with_templates


class KafkaConfig(Section):
    """Where Kafka is, and what our part of it is called."""

    brokers: list[str] = Field(["localhost:9092"], min_length=1, description="Bootstrap servers, host:port.")
    group: str = Field(
        "attributary",
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Consumer group and Faust app id. The state's changelog topic is <group>-state-changelog, that of "
        "sharded models <group>-shards.",
    )
    topic_prefix: str = Field(
        "attributary", pattern=r"^[A-Za-z0-9._-]{1,200}$", description="First part of every topic's name."
    )
    partitions: PositiveInt = Field(4, description="Partitions of the observations topic and of the state's changelog.")
    replication_factor: PositiveInt | None = Field(
        None,
        description="Replicas of each partition that `attributary topics create` asks for. null: as many as there are "
        "brokers, at most 3.",
    )
    min_insync_replicas: PositiveInt | None = Field(
        None,
        description="Replicas that must have a record before it counts as written: min.insync.replicas of the topics. "
        "null: 2 where there are three replicas or more, otherwise 1.",
    )
    instance_id: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9._-]{1,200}$",
        description="Static group membership: this worker's own name in the group, where it keeps one over restarts, "
        "such as a StatefulSet's pod (ATTRIBUTARY_KAFKA__INSTANCE_ID). Killed, it has its partitions again at its "
        "restart; one that stops for good keeps them from the others for session_timeout_s.",
    )
    session_timeout_s: PositiveFloat = Field(60.0, description="A worker silent for so long loses its partitions.")
    transaction_timeout_s: Annotated[float, Field(ge=1, le=2_000_000)] = Field(
        300.0,
        description="With delivery: exactly_once: a checkpoint's transaction that is open for so long is aborted by "
        "brokers, and its worker begins anew. More than the longest step and than storing all states of a partition "
        "take; at most transaction.max.timeout.ms of the brokers, 900 s by default.",
    )
    max_record_bytes: Annotated[int, Field(ge=1_000_000)] = Field(
        5_000_000,
        description="Largest record that a worker writes: producer limit, and max.message.bytes of the dead letters, "
        "which are cut to it. States are stored in pieces.",
    )
    max_batch_bytes: Annotated[int, Field(ge=1_000_000, le=2**30)] = Field(
        32 * 2**20,
        description="Largest batch of records, unpacked, that is read; a larger one becomes one dead letter. A worker "
        "holds one per partition. Brokers take 1 MB, compressed, by default.",
    )
    security: SecurityConfig = Field(default_factory=SecurityConfig)
    _read: str | None = PrivateAttr(None)
    schema_registry: RegistryConfig | None = Field(
        None, description="The schema registry of sources in Avro or Protobuf. null: there is none."
    )

    @model_validator(mode="after")
    def _reads_what_it_writes(self) -> KafkaConfig:
        if self.max_batch_bytes < self.max_record_bytes:
            raise ValueError(
                f"max_batch_bytes ({self.max_batch_bytes}) must be at least max_record_bytes "
                f"({self.max_record_bytes}): a worker reads its own records again"
            )
        return self

    @model_validator(mode="after")
    def _can_be_written(self) -> KafkaConfig:
        most = self.replication_factor or 3  # as many as are made at most where nothing is said
        if self.min_insync_replicas is not None and self.min_insync_replicas > most:
            raise ValueError(
                f"min_insync_replicas ({self.min_insync_replicas}) must be at most replication_factor "
                f"({self.replication_factor or 'null: 3'}): no record could ever be written"
            )
        return self

    @property
    def topics(self) -> Topics:
        """The topics' names."""
        return Topics(self.topic_prefix, self._read)

    def take_read(self, topic: str | None) -> None:
        """Take over the foreign topic that replaces that of the observations."""
        self._read = topic

    @property
    def changelog(self) -> str:
        """The state table's changelog topic, as Faust names it."""
        return f"{self.group}-state-changelog"

    @property
    def shards(self) -> str:
        """Topic by which the workers of a group exchange shards of models."""
        return f"{self.group}-shards"


class CheckpointConfig(Section):
    """When state is stored and offsets are committed, per partition."""

    interval_s: PositiveFloat = Field(10.0, description="So often while observations come.")
    max_observations: PositiveInt = Field(5000, description="And after so many observations.")
    max_share: Annotated[float, Field(gt=0, le=1)] = Field(
        0.1, description="Largest part of the worker's time that storing may take: large states are stored less often."
    )
    max_replay_s: PositiveFloat = Field(
        60.0,
        description="But after so many seconds of work in any case: what a crash repeats at worst, and as much again "
        "while state is being stored.",
    )


class ArtefactsConfig(Section):
    """Files of models that the configuration or a record of the models topic may name."""

    directory: Path | None = Field(
        None,
        description="Folder of the files. Those of pickle and joblib run code when they are read: nobody else may "
        "write there. null: none are taken.",
    )


class ControlConfig(Section):
    """What a record of the models topic may do."""

    allowed: list[Annotated[str, Field(pattern=r"^([A-Za-z_][\w.]*(:[A-Za-z_]\w*)?|https?://[^\s@?#\\%]+)$")]] = Field(
        ["river."],
        description="Packages, modules or classes that a new version may name, dotted: of packages and modules only "
        "classes that models are made of. A factory only where it is named here itself, as module:function. A model "
        "that is served only below an address that is named here, such as http://fraud/v2/models. And what files of "
        "skops may hold beside the types that skops trusts.",
    )
    build_within_s: PositiveFloat | None = Field(
        None,
        description="A new version that takes longer to be made, in a process of its own, is a dead letter. null: 60 "
        "seconds, or half of watchdog.end_after_s where that is less.",
    )
    build_memory: Annotated[int, Field(ge=300_000_000)] | None = Field(
        None,
        description="Bytes that this process may take, River and numpy included. null: half of what the worker's "
        "container or machine has.",
    )
    max_model_bytes: PositiveInt = Field(
        200_000_000, description="A new version that takes more bytes when it is stored is a dead letter."
    )


class WebConfig(Section):
    """/metrics, /livez and /readyz."""

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 in a container.")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(6066, description="0 takes a free one and logs it.")
    stuck_after_s: PositiveFloat = Field(
        120.0, description="/livez fails when the event loop has not answered for so long."
    )


class WatchdogConfig(Section):
    """What is done about a step that takes too long: an observation in a model, a checkpoint, a pause of the loop."""

    warn_after_s: PositiveFloat = Field(30.0, description="Then the log says where it is, with the stack.")
    end_after_s: PositiveFloat = Field(
        900.0, description="Then the process ends with status 1; the next owner repeats from the last checkpoint."
    )
    stop_within_s: Annotated[float, Field(gt=8)] = Field(
        27.0,
        description="Longest from SIGTERM to the end of the process, whatever hangs; less than the time after which "
        "it is killed (Kubernetes: terminationGracePeriodSeconds, 30 s).",
    )

    @model_validator(mode="after")
    def _warns_before_it_ends(self) -> WatchdogConfig:
        if self.end_after_s <= self.warn_after_s:
            raise ValueError(
                f"end_after_s ({self.end_after_s:g}) must be more than warn_after_s ({self.warn_after_s:g})"
            )
        return self


_LIMITS = Limits()


class MetricsConfig(Section):
    """Limits on the number of series."""

    max_features: PositiveInt = Field(
        _LIMITS.max_features, description="Features per model and explainer; the rest is __other__."
    )
    max_models: PositiveInt = Field(
        _LIMITS.max_models, description="Models with series of their own; more are counted as dropped."
    )
    max_series: PositiveInt = Field(
        _LIMITS.max_series, description="Series of features in all; further models are dropped."
    )


class RunConfig(Section):
    """What `attributary run` does beside the observations."""

    mapper: bool = Field(
        True,
        description="Map the records of `sources` in the worker's process; false: `attributary map` does it alone.",
    )


class LogConfig(Section):
    """Logs go to stderr."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least severity that is logged.")


class Config(Section):
    """The whole configuration. Read it with `load_config`."""

    model_config = ConfigDict(hide_input_in_errors=True)

    kafka: KafkaConfig = Field(default_factory=KafkaConfig)
    defaults: ModelSettings = Field(
        default_factory=ModelSettings, description="Settings of every model that it does not give itself."
    )
    models: dict[str, ModelConfig] = Field(
        min_length=1,
        description="Model id to model. The id is the records' key. An id with *, ? or [ is a template: a glob that "
        "stands for all ids that it matches.",
    )
    sources: dict[Name, SourceConfig] = Field(
        default_factory=dict, description="Name to topics of others with observations, which are attached as they are."
    )
    labels: dict[Name, LabelsConfig] = Field(
        default_factory=dict, description="Name to topics of others with the labels of such observations."
    )
    run: RunConfig = Field(default_factory=RunConfig)
    control: ControlConfig = Field(default_factory=ControlConfig)
    artefacts: ArtefactsConfig = Field(default_factory=ArtefactsConfig)
    mlflow: MlflowConfig = Field(default_factory=MlflowConfig)
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig)
    state: StateConfig = Field(default_factory=StateConfig)
    web: WebConfig = Field(default_factory=WebConfig)
    serve: ServeConfig = Field(default_factory=ServeConfig)
    watchdog: WatchdogConfig = Field(default_factory=WatchdogConfig)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    delivery: Literal["at_least_once", "exactly_once"] = Field(
        "at_least_once",
        description="exactly_once: what follows from observations is published at the checkpoint, in one transaction "
        "with it, and consumers with isolation.level=read_committed see each event once. at_least_once: it is "
        "published at once, and some of it again after a crash, with the same ids.",
    )
    max_observation_bytes: PositiveInt = Field(1_000_000, description="Longer values go to the dead letters.")
    _finder: Finder | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _builds_before_the_watchdog_ends(self) -> Config:
        if self.build_within_s >= self.watchdog.end_after_s:
            raise ValueError(
                f"control.build_within_s ({self.build_within_s:g}) must be less than watchdog.end_after_s "
                f"({self.watchdog.end_after_s:g})"
            )
        return self

    @property
    def direct(self) -> tuple[str, SourceConfig] | None:
        """Source whose topic workers read in place of ours, with its name."""
        return next(((name, source) for name, source in self.sources.items() if source.key == "direct"), None)

    @property
    def is_exact(self) -> bool:
        """Whether each event is published exactly once."""
        return self.delivery == "exactly_once"

    @property
    def finder(self) -> Finder:
        """Finder of the settings of a model id."""
        if self._finder is None or self._finder.models is not self.models:  # a copy may have other models
            self._finder = Finder(self.models)
        return self._finder

    def find(self, model_id: str) -> ModelConfig | None:
        """Return the settings of a model id, from itself or its template.

        None where no such model is configured.

        A template is no model id.
        """
        name = self.finder.name_of(model_id)
        return None if name is None else self.models[name]

    def settings_of(self, name: str) -> ModelConfig:
        """Return the settings of a configured model id or template name.

        Raises
        ------
        KeyError
            It is neither.
        """
        return self.models[name] if name in self.models else self.models[self.finder.name_of(name) or name]

    @property
    def n_models_at_most(self) -> int:
        """Largest number of models, by ids and by templates."""
        return sum((model.max_models or MAX_MODELS) if is_template(name) else 1 for name, model in self.models.items())

    def with_one_of(self, name: str) -> tuple[Config, str]:
        """Return a configuration with a model id to try these settings with.

        A template's settings are tried with an id that it matches.
        """
        if not (name in self.models and is_template(name)):
            return self, name
        model_id, model = example_of(name), self.models[name]
        return self.model_copy(update={"models": {**self.models, model_id: model}}), model_id

    @property
    def sharded(self) -> frozenset[str]:
        """Ids of the models whose observations may lie on any partition."""
        return frozenset(model_id for model_id, model in self.models.items() if model.sharded)

    @property
    def asks_endpoints(self) -> bool:
        """Whether a served model may be asked, by configuration or deployment."""
        configured = any(isinstance(model.model, ServedConfig) for model in self.models.values())
        return configured or any(map(is_address, self.control.allowed))

    @property
    def without_shards(self) -> Config:
        """The same configuration without shards, for a run without Kafka."""
        models = {model_id: model.model_copy(update={"sharded": False}) for model_id, model in self.models.items()}
        return self.model_copy(update={"models": models}) if self.sharded else self

    @property
    def request_timeout_s(self) -> float:
        """Seconds that a writing client waits for an answer.

        A batch must not expire during a long step.
        """
        return self.watchdog.end_after_s + 300

    @property
    def build_within_s(self) -> float:
        """How many seconds the model of a new version may take to be made."""
        return self.control.build_within_s or min(60.0, self.watchdog.end_after_s / 2)

    @model_validator(mode="before")
    @classmethod
    def _merge_defaults(cls, data: Any) -> Any:
        models, defaults = data.get("models"), data.get("defaults")
        if not isinstance(models, dict):
            return data
        models = with_templates(models)
        data = {**data, "models": models}
        if not isinstance(defaults, dict):
            return data
        try:
            ModelSettings.model_validate(defaults)
        except ValidationError:
            return data  # named as a fault of the defaults, once, and not of every model
        return {**data, "models": {name: with_defaults(own, defaults) for name, own in models.items()}}

    @model_validator(mode="after")
    def _hand_over(self) -> Config:
        for model in self.models.values():
            model.take([*(one for one in self.control.allowed if not is_address(one)), *self.state.allowed])
            if isinstance(model.model, FileConfig):
                model.model.take(self.artefacts.directory, self.control.allowed)
            elif isinstance(model.model, MlflowModel):
                model.model.take(self.artefacts.directory, self.control.allowed, self.mlflow)
        return self

    @model_validator(mode="after")
    def _attach(self) -> Config:
        if self.sources or self.labels:
            kafka = self.kafka
            ours = [*kafka.topics.names, kafka.changelog, kafka.shards]
            check_attached(self.sources, self.labels, self.models, ours, has_registry=kafka.schema_registry is not None)
        self.kafka.take_read(None if self.direct is None else self.direct[1].topic[0])
        for entry, model in self.models.items():
            model.take_join(join_of(entry, self.sources, self.labels, self.models))
        return self

    @field_validator("models")
    @classmethod
    def _ids(cls, value: dict[str, ModelConfig]) -> dict[str, ModelConfig]:
        for model_id in value:
            try:
                decode_model_id(model_id.encode())
            except InvalidRecordError as error:
                raise ValueError(f"model id {model_id!r}: {error}") from None
        check_templates(value)
        return value

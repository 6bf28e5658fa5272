"""What one model id has: its model, the explainers of it, and what is counted."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    ExplainerError,
    Explainers,
    IncrementalPFI,
    IncrementalSAGE,
    RemovalExplainer,
    SmoothedMean,
    SmoothedPrediction,
    dump_model,
    make_reservoir,
    resolve_loss,
)

from ..config.settings import Config, ModelConfig
from ..errors import ConfigError
from .factory import make_model
from .publication import Publication

ALARM_ROUTES = ("detector", "discrepancy")
"""What raises an alarm."""

CHANGE_ROUTES = (*ALARM_ROUTES, "version")
"""What a change is explained for."""

VERSION_OUTCOMES = ("explained", "unexplained", "refused")
"""What can become of a new version: it takes over, explained or not, or it cannot."""

_EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}


@dataclass
class ModelCounts:
    """What has happened to a model id since its first observation ever; kept through every change of its model.

    `changes` and `rejected` are by route; `versions` counts new versions that have taken over, by whether the
    change was explained, and those that could not take over.
    """

    changes: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(CHANGE_ROUTES, 0)))
    data_changes: int = 0
    alarms: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ALARM_ROUTES, 0)))
    rejected: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(ALARM_ROUTES, 0)))
    rejected_discrepancy: float | None = None
    versions: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(VERSION_OUTCOMES, 0)))

    def snapshot(self) -> dict[str, Any]:
        """Plain data to restore from."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_snapshot(cls, snapshot: dict[str, Any]) -> ModelCounts:
        """The counts that the snapshot was taken of."""
        values: dict[str, Any] = {
            name: Counter(value) if isinstance(value, dict) else value for name, value in snapshot.items()
        }
        return cls(**values)


@dataclass
class ModelState:
    """Everything that one model id has: the model, its explainers, and how they are published.

    `n_observations` counts those that went all the way through, `n_failed` those on which the model raised.
    """

    model_id: str
    config: ModelConfig
    model: Any
    explainers: dict[str, RemovalExplainer]
    change: ChangeExplainer | None
    publications: dict[str, Publication]
    model_loss: SmoothedMean
    baseline_loss: SmoothedMean
    marginal: SmoothedPrediction
    version: str = ""
    """Version of the model as it is now; the configuration's, or a later one by the models topic."""
    spec: dict[str, Any] = field(default_factory=dict)
    """How that version was made, in the form of `Deployment.spec`."""
    configured: dict[str, Any] = field(default_factory=dict)
    """`configured_as` of the configuration under which it took over."""
    deployed: int = -1
    """Offset in the models topic of the last deployment that took over; -1 before the first."""
    stored_deployed: int = -1
    """`deployed` of the stored state, from which a replay would begin."""
    counts: ModelCounts = field(default_factory=ModelCounts)
    stride: int = 1
    """Within a budget, one in so many observations is explained; changed only where the state is stored."""
    n_observations: int = 0
    n_failed: int = 0
    last_observation_ms: int | None = None
    last_change_ms: int | None = None
    last_change: dict[str, Any] | None = None
    """The last event of a change, of the model or of its data, `in_short`."""
    partition: int = -1
    """Partition that the model's observations come on; -1 before the first."""
    offset: int = -1
    """Offset of the last observation that is in this state; -1 before the first."""
    failed_offsets: list[int] = field(default_factory=list)
    """Offsets since the last checkpoint on which the model raised."""
    _together: Explainers | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self.loss = resolve_loss(self.model, self.config.loss)

    @property
    def n_changes(self) -> int:
        """Changes of the model that have been explained, by any route."""
        return self.counts.changes.total()

    @property
    def explain_every(self) -> int:
        """One in so many observations is explained: those whose number is a multiple of it."""
        explain = self.config.explain
        return explain.every or (1 if explain.budget is None else self.stride)

    @property
    def together(self) -> Explainers:
        """The explainers, whose rows are evaluated as one batch with the prediction."""
        together = self._together
        if together is None or list(together.explainers.values()) != list(self.explainers.values()):
            together = self._together = Explainers(self.model, self.explainers, self.loss.output)
        return together

    @property
    def evaluations(self) -> dict[str, int]:
        """Observations evaluated by this process, by path: fast, or naive, the model itself row by row."""
        paths = self.together.paths
        return {"fast": paths["fast"], "naive": paths.total() - paths["fast"]}

    def predict(self, x: dict[str, Any]) -> Any:
        """The model's prediction in the form that the loss reads."""
        return self.together.predict(x, explain=False)


def new_state(
    model_id: str,
    config: ModelConfig,
    model: Any = None,
    *,
    version: str | None = None,
    spec: dict[str, Any] | None = None,
) -> ModelState:
    """The state of a model before its first observation.

    Parameters
    ----------
    model
        The model to explain; None builds the configured one.
    version, spec
        Of that model; the configuration's where it is None.
    """
    model = make_model(config) if model is None else model
    version = config.version if version is None else version
    return ModelState(
        model_id=model_id,
        config=config,
        model=model,
        explainers={name: new_explainer(model_id, config, name, model) for name in config.explainers},
        change=new_change_explainer(model_id, config, model, version),
        publications={name: Publication(config.publish) for name in config.explainers},
        model_loss=SmoothedMean(config.alpha),
        baseline_loss=SmoothedMean(config.alpha),
        marginal=SmoothedPrediction(config.alpha),
        version=version,
        spec=spec or config.spec,
        configured=configured_as(config),
    )


def configured_as(config: ModelConfig) -> dict[str, Any]:
    """What the configuration says of which model it is: where it differs, another model takes over."""
    return {"version": config.version, **config.spec}


def check_models(config: Config) -> None:
    """Build every configured model with its explainers once, save and forget it: faults show before the start.

    Raises
    ------
    ConfigError
        A model cannot be made or saved, or cannot be explained as configured.
    """
    for model_id, model in config.models.items():
        try:
            dump_model(new_state(model_id, model).model)
        except (ExplainerError, ConfigError) as error:
            raise ConfigError(f"models.{model_id}: {error}") from None


def new_explainer(model_id: str, config: ModelConfig, name: str, model: Any) -> RemovalExplainer:
    """The configured explainer of that name, before its first observation."""
    chosen = config.explainers[name]  # type: ignore[index]
    return _EXPLAINERS[name](
        model,
        loss=config.loss,
        alpha=config.alpha if chosen.alpha is None else chosen.alpha,
        n_samples=chosen.n_samples,
        removal=chosen.removal,
        reservoir=make_reservoir(chosen.reservoir, chosen.reservoir_size),
        sampling=chosen.sampling,
        groups=config.groups,
        missing=config.missing,
        seed=_seed(config.seed, model_id, name),
        **chosen.of_sage(),
        **({"feature_share": config.explain.feature_share} if name == "pfi" else {}),
    )


def new_change_explainer(
    model_id: str, config: ModelConfig, model: Any, version: str | None = None
) -> ChangeExplainer | None:
    """The configured change explainer, before its first observation; None where there is none."""
    if config.change is None:
        return None
    return ChangeExplainer(
        model,
        **config.change.model_dump(),
        groups=config.groups,
        version=version,
        seed=_seed(config.seed, model_id, "change"),
    )


def _seed(seed: int, model_id: str, name: str) -> int:
    # Each generator its own stream of numbers, the same in every process: hash() of a string is not.
    return zlib.crc32(f"{seed}/{model_id}/{name}".encode())

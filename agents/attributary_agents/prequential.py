"""One observation through one model: predict, score, explain, learn. Plain functions, no Kafka.

The worker, `attributary replay` and the tests all come through `prequential`.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    ChangeExplanation,
    ExplainerError,
    IncrementalPFI,
    IncrementalSAGE,
    RemovalExplainer,
    SmoothedMean,
    SmoothedPrediction,
    dump_model,
    is_usable,
    make_reservoir,
    model_function,
    read_missing,
    resolve_loss,
)
from attributary_topics import (
    ChangeEvent,
    DetectorSpec,
    FeatureChange,
    ImportanceEvent,
    Observation,
    Source,
)

from .config import Config, ModelConfig
from .errors import ConfigError
from .model_factory import make_model
from .publication import Publication, feature_importances, finite

_EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}


class StepError(Exception):
    """The model raised on an observation. `stage` says where: predict, explain, learn or change."""

    def __init__(self, stage: str, error: Exception) -> None:
        self.stage = stage
        self.error = error
        super().__init__(f"{stage}: {type(error).__name__}: {error}")


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
    n_observations: int = 0
    n_failed: int = 0
    n_changes: int = 0
    last_observation_ms: int | None = None
    last_change_ms: int | None = None
    partition: int = -1
    """Partition that the model's observations come on; -1 before the first."""
    offset: int = -1
    """Offset of the last observation that is in this state; -1 before the first."""
    failed_offsets: list[int] = field(default_factory=list)
    """Offsets since the last checkpoint on which the model raised."""
    _function: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.loss = resolve_loss(self.model, self.config.loss)
        self._function = model_function(self.model, self.loss.output)

    def predict(self, x: dict[str, Any]) -> Any:
        """The model's prediction in the form that the loss reads."""
        return self._function(x)


def new_state(model_id: str, config: ModelConfig, model: Any = None) -> ModelState:
    """The state of a model before its first observation.

    Parameters
    ----------
    model
        The model to explain; None builds the configured one.
    """
    model = make_model(config) if model is None else model
    return ModelState(
        model_id=model_id,
        config=config,
        model=model,
        explainers={name: new_explainer(model_id, config, name, model) for name in config.explainers},
        change=new_change_explainer(model_id, config, model),
        publications={name: Publication(config.publish) for name in config.explainers},
        model_loss=SmoothedMean(config.alpha),
        baseline_loss=SmoothedMean(config.alpha),
        marginal=SmoothedPrediction(config.alpha),
    )


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
    )


def new_change_explainer(model_id: str, config: ModelConfig, model: Any) -> ChangeExplainer | None:
    """The configured change explainer, before its first observation; None where there is none."""
    if config.change is None:
        return None
    return ChangeExplainer(
        model, **config.change.model_dump(), groups=config.groups, seed=_seed(config.seed, model_id, "change")
    )


def _seed(seed: int, model_id: str, name: str) -> int:
    # Each generator its own stream of numbers, the same in every process: hash() of a string is not.
    return zlib.crc32(f"{seed}/{model_id}/{name}".encode())


def prequential(
    state: ModelState, observation: Observation, source: Source, timestamp_ms: int
) -> list[ImportanceEvent | ChangeEvent]:
    """Predict, score, explain, learn, look for change; return the events that follow (iSAGE Algorithm 6).

    Parameters
    ----------
    state
        Of the observation's model; updated in place.
    source, timestamp_ms
        The observation's record.

    Raises
    ------
    StepError
        The model raised. Before `learn` nothing of the model has changed. In `learn` the model may have learnt
        in part; that part is kept, by every replay in the same way.
    """
    x, y = observation.x, observation.y
    if state.config.missing not in ("value", "skip"):
        # The model too reads the observation by the policy; `skip` is the explainers' business.
        x = dict(read_missing(x, state.config.missing) or {})
    stage = "predict"
    try:
        y_pred = state.predict(x)
        stage = "explain"
        if is_usable(y_pred):
            loss = state.loss(y, y_pred)
            if math.isfinite(loss):  # an infinite one, and the prediction behind it, would stay in the means for ever
                state.model_loss.update(loss)
                state.baseline_loss.update(state.loss(y, state.marginal.update(y_pred)))
        for explainer in state.explainers.values():
            explainer.explain_one(x, y, y_pred=y_pred)
        stage = "learn"
        if state.config.learn:
            state.model.learn_one(x, y)
        stage = "change"
        explanation = state.change.update(x, y, y_pred) if state.change else None
    except Exception as error:  # a model is the user's code: whatever it raises is about this observation
        state.n_failed += 1
        raise StepError(stage, error) from error
    state.n_observations += 1
    state.last_observation_ms = timestamp_ms
    events: list[ImportanceEvent | ChangeEvent] = []
    if explanation is not None:
        state.n_changes += 1
        state.last_change_ms = timestamp_ms
        events.append(_change_event(state, explanation, source))
    for name, publication in state.publications.items():
        if explanation is not None:
            publication.model_changed(state.n_observations)
        trigger = publication.trigger(state.explainers[name], state.n_observations)
        if trigger is not None:
            events.append(_importance_event(state, name, trigger, source))
    return events


def _importance_event(state: ModelState, name: str, trigger: str, source: Source) -> ImportanceEvent:
    explainer, publication = state.explainers[name], state.publications[name]
    moved, gain = publication.movement(explainer.importance)
    return ImportanceEvent(
        model_id=state.model_id,
        model_version=state.config.version,
        explainer=name,
        removal=explainer.imputer.name,
        loss=explainer.loss.name,
        alpha=explainer.alpha,
        observation=state.n_observations,
        n_observations=explainer.n_observations,
        model_loss=finite(state.model_loss.value),
        baseline_loss=finite(state.baseline_loss.value),
        discrepancy=finite(state.change.discrepancy) if state.change else None,
        shift=moved,
        ndcg=gain,
        reference_id=publication.reference_id,
        trigger=trigger,
        features=feature_importances(explainer),
        source=source,
    )


def _change_event(state: ModelState, explanation: ChangeExplanation, source: Source) -> ChangeEvent:
    # The change explainer counts from when it was (re)started; the event counts the model's observations.
    began = state.n_observations - explanation.n_observations
    significant = set(explanation.significant())
    delta, delta_std_error = explanation.delta, explanation.delta_std_error
    before_ranks, after_ranks = explanation.before_ranks, explanation.after_ranks
    features = {
        str(name): FeatureChange(
            before=finite(explanation.before.get(name)),
            after=finite(explanation.after.get(name)),
            delta=delta[name],
            before_std_error=finite(explanation.before_std_error.get(name)),
            after_std_error=finite(explanation.after_std_error.get(name)),
            delta_std_error=finite(delta_std_error[name]),
            before_rank=before_ranks.get(name),
            after_rank=after_ranks.get(name),
            significant=name in significant,
        )
        for name in sorted(delta, key=lambda name: (-abs(delta[name]), str(name)))
    }
    return ChangeEvent(
        model_id=state.model_id,
        model_version=state.config.version,
        observation=state.n_observations,
        detected_at=began + explanation.n_detected,
        reference_at=began + explanation.reference_observation,
        detector=DetectorSpec(explanation.detector, explanation.detector_params, explanation.signal),
        window=explanation.window,
        discrepancy=explanation.discrepancy,
        threshold=explanation.threshold,
        n_discrepancy=explanation.n_discrepancy,
        distance=explanation.distance,
        loss=explanation.loss,
        features=features,
        sentence=explanation.sentence(state.model_id, state.n_observations),
        source=source,
    )

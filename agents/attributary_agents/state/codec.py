"""A model's state as bytes and back: what the state table holds.

In the format of `packing`, `ATS4`: plain data, in which the model is a slim pickle of its own. `ATS3`, of the last
release, is the same without the versions, and is read too; what is older is refused, with what to do.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    ExplainerError,
    SmoothedMean,
    SmoothedPrediction,
    dump_model,
    load_model,
)

from ..config.settings import ModelConfig
from ..errors import DamagedStateError, StateError
from ..models.model_state import ModelCounts, ModelState, configured_as, new_state
from .packing import PackError, TornError, pack, packed_with, unpack, versions

MAGIC = b"ATS4"
OLDER = (b"ATS3",)

logger = logging.getLogger(__name__)


def encode_state(state: ModelState) -> bytes:
    """The bytes to store."""
    data = {
        "model_id": state.model_id,
        "version": state.version,
        "spec": state.spec,
        "configured": state.configured,
        "deployed": state.deployed,
        "model": dump_model(state.model),
        "explainers": {name: explainer.snapshot() for name, explainer in state.explainers.items()},
        "change": state.change.snapshot() if state.change else None,
        "publications": {name: publication.snapshot() for name, publication in state.publications.items()},
        "loss": state.loss.name,
        "model_loss": state.model_loss.snapshot(),
        "baseline_loss": state.baseline_loss.snapshot(),
        "marginal": state.marginal.snapshot(),
        "counts": [state.n_observations, state.n_failed],
        "changes": state.counts.snapshot(),
        "stride": state.stride,
        "times_ms": [state.last_observation_ms, state.last_change_ms],
        "last_change": state.last_change,
        "position": [state.partition, state.offset, state.failed_offsets],
    }
    return pack(MAGIC, data)


def decode_state(model_id: str, config: ModelConfig, blob: bytes) -> ModelState:
    """The state in `blob`, as far as it still belongs to the configuration.

    An explainer whose parameters have changed starts afresh: old state is never read as new. Where the configuration
    says another model than the state's, `configured` of the state is not what the configuration says: the state's
    model is to be replaced before the next observation. One that can no longer be loaded, or not be explained as
    configured now, cannot be compared: the configured one starts afresh, with a warning. The position is kept in any
    case, so that nothing is counted twice.

    Raises
    ------
    DamagedStateError
        The bytes are torn.
    StateError
        They are of another format or model, or cannot be used by this release.
    """
    _check_versions(model_id, config, blob)
    data = _unpack(model_id, blob)
    try:
        state = _old_model(model_id, config, data, blob)
    except (StateError, ExplainerError) as error:
        if data["configured"] == configured_as(config):
            raise
        logger.warning(
            "model %s: version %s of the configuration starts afresh; the change from version %s cannot be explained, "
            "because that one can no longer be used: %s",
            model_id,
            config.version,
            data["version"],
            error,
        )
        state = new_state(model_id, config)
        state.deployed = state.stored_deployed = data["deployed"]
        state.partition, state.offset, state.failed_offsets = data["position"]
        return state
    state.partition, state.offset, state.failed_offsets = data["position"]
    state.n_observations, state.n_failed = data["counts"]
    state.counts = ModelCounts.from_snapshot(data["changes"])
    state.stride = data.get("stride", 1)  # this and `last_change` are not in states of earlier releases
    state.last_observation_ms, state.last_change_ms = data["times_ms"]
    state.last_change = data.get("last_change")
    if (data["loss"], data["model_loss"]["weights"]["alpha"]) == (state.loss.name, config.alpha):
        state.model_loss = SmoothedMean.from_snapshot(data["model_loss"])
        state.baseline_loss = SmoothedMean.from_snapshot(data["baseline_loss"])
        state.marginal = SmoothedPrediction.from_snapshot(data["marginal"])
    for name, explainer in state.explainers.items():
        snapshot = data["explainers"].get(name)
        if snapshot is not None and _same_parameters(model_id, name, snapshot, explainer.parameters):
            state.explainers[name] = type(explainer).from_snapshot(snapshot, state.model)
            state.publications[name].restore(data["publications"][name])
    if (
        state.change
        and data["change"]
        and _same_parameters(model_id, "change", data["change"], state.change.parameters)
    ):
        state.change = ChangeExplainer.from_snapshot(data["change"], state.model)
    return state


@dataclass(frozen=True)
class Description:
    """What a stored state says of itself; the fields are those of `ModelState`."""

    version: str
    n_observations: int
    partition: int
    offset: int
    failed_offsets: list[int]
    deployed: int


def describe(model_id: str, blob: bytes) -> Description:
    """What the bytes say, without loading the model: its class may be of a package that is not here.

    Raises
    ------
    DamagedStateError
        The bytes are torn.
    StateError
        They are of another format or model.
    """
    data = _unpack(model_id, blob)
    partition, offset, failed_offsets = data["position"]
    return Description(data["version"], data["counts"][0], partition, offset, failed_offsets, data["deployed"])


def _old_model(model_id: str, config: ModelConfig, data: dict[str, Any], blob: bytes) -> ModelState:
    model = _load(model_id, data["model"], blob)
    state = new_state(model_id, config, model, version=data["version"], spec=data["spec"])
    state.configured, state.deployed = data["configured"], data["deployed"]
    state.stored_deployed = data["deployed"]
    return state


def _unpack(model_id: str, blob: bytes) -> dict[str, Any]:
    try:
        data = unpack(MAGIC, blob, older=OLDER)
    except PackError as error:
        if isinstance(error, TornError):
            raise DamagedStateError(f"the stored state of {model_id} {error}") from error
        raise StateError(f"the stored state {error}. {_advice(model_id, blob)}") from error
    if not isinstance(data, dict) or data.get("model_id") != model_id:
        raise StateError(f"the stored state is not of this model. {_advice(model_id, blob)}")
    return data


def _load(model_id: str, data: bytes, blob: bytes) -> Any:
    try:
        return load_model(data)
    except Exception as error:  # foreign bytes, or a class that has moved, can raise anything
        raise StateError(
            f"the stored state cannot be read: {type(error).__name__}: {error}. {_advice(model_id, blob)}"
        ) from error


def _check_versions(model_id: str, config: ModelConfig, blob: bytes) -> None:
    """River's models change between its minor releases: a state of another one loads, and fails or errs later."""
    stored, here = packed_with(blob).get("river"), versions()["river"]
    if stored is None or _minor(stored) == _minor(here) or config.any_river:
        return
    raise StateError(
        f"model {model_id}: its state was stored with River {stored}, and here is River {here}. Run with {stored} "
        f"again; or set models.{model_id}.any_river: true after a trial with a copy. {how_to_mend(model_id)}"
    )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def how_to_mend(model_id: str) -> str:
    """What to do about a state that cannot be read."""
    return (
        f"Start the model afresh with `attributary models reset {model_id}`, or go back to an exported state with "
        f"`attributary models import {model_id} FILE`"
    )


def _advice(model_id: str, blob: bytes) -> str:
    written = ", ".join(f"{name} {version}" for name, version in packed_with(blob).items())
    return (
        f"Model {model_id}: run the release, with the packages, that wrote it{f' ({written})' if written else ''}. "
        f"{how_to_mend(model_id)}"
    )


def _same_parameters(model_id: str, name: str, snapshot: dict[str, Any], parameters: dict[str, Any]) -> bool:
    same: bool = snapshot["parameters"] == parameters
    if not same:
        logger.warning("model %s: parameters of %s changed in the configuration: it starts afresh", model_id, name)
    return same

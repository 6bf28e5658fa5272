"""A model's state as bytes and back: what the state table holds.

Layout: 4 bytes `ATS2`, then a zstd frame with a checksum over the slim pickle of plain data, in which the
model is a slim pickle of its own. Unpickling runs code: the state's changelog topic must be writable by the
workers alone.
"""

from __future__ import annotations

import logging
from typing import Any

import zstandard

from attributary_explainers import ChangeExplainer, SmoothedMean, SmoothedPrediction, dump_model, load_model

from .config import ModelConfig
from .errors import StateError
from .prequential import ModelState, new_state

MAGIC = b"ATS2"
_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_MAX_DECOMPRESSED_BYTES = 2**31

logger = logging.getLogger(__name__)


def encode_state(state: ModelState) -> bytes:
    """The bytes to store."""
    data = {
        "model_id": state.model_id,
        "model_key": _model_key(state.config),
        "model": dump_model(state.model),
        "explainers": {name: explainer.snapshot() for name, explainer in state.explainers.items()},
        "change": state.change.snapshot() if state.change else None,
        "publications": {name: publication.snapshot() for name, publication in state.publications.items()},
        "loss": state.loss.name,
        "model_loss": state.model_loss.snapshot(),
        "baseline_loss": state.baseline_loss.snapshot(),
        "marginal": state.marginal.snapshot(),
        "counts": [state.n_observations, state.n_failed, state.n_changes],
        "times_ms": [state.last_observation_ms, state.last_change_ms],
        "position": [state.partition, state.offset, state.failed_offsets],
    }
    return MAGIC + _COMPRESSOR.compress(dump_model(data))


def decode_state(model_id: str, config: ModelConfig, blob: bytes) -> ModelState:
    """The state in `blob`, as far as it still belongs to the configuration.

    A model whose class, arguments or version have changed starts afresh, and so does an explainer whose
    parameters have: old state is never read as new. The position is kept, so that nothing is counted twice.

    Raises
    ------
    StateError
        The bytes are no state, or of another format or model.
    """
    data = _unpack(model_id, blob)
    state = new_state(model_id, config)
    state.partition, state.offset, state.failed_offsets = data["position"]
    if data["model_key"] != _model_key(config):
        logger.warning("model %s: class, arguments or version changed in the configuration: it starts afresh", model_id)
        return state
    state = new_state(model_id, config, _load(model_id, data["model"]))
    state.partition, state.offset, state.failed_offsets = data["position"]
    state.n_observations, state.n_failed, state.n_changes = data["counts"]
    state.last_observation_ms, state.last_change_ms = data["times_ms"]
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


def _unpack(model_id: str, blob: bytes) -> dict[str, Any]:
    if blob[:4] != MAGIC:
        raise StateError(f"the stored state begins with {blob[:4]!r}, not {MAGIC!r}. {_advice(model_id)}")
    try:
        raw = zstandard.ZstdDecompressor().decompress(blob[4:], max_output_size=_MAX_DECOMPRESSED_BYTES)
    except zstandard.ZstdError as error:
        raise StateError(f"the stored state is torn: {error}. {_advice(model_id)}") from error
    data = _load(model_id, raw)
    if not isinstance(data, dict) or data.get("model_id") != model_id:
        raise StateError(f"the stored state is not of this model. {_advice(model_id)}")
    return data


def _load(model_id: str, data: bytes) -> Any:
    try:
        return load_model(data)
    except Exception as error:  # foreign bytes, or a class that has moved, can raise anything
        raise StateError(
            f"the stored state cannot be read: {type(error).__name__}: {error}. {_advice(model_id)}"
        ) from error


def _advice(model_id: str) -> str:
    return (
        f"model {model_id}: delete its record from the state's changelog topic to start afresh, or run the release, "
        "with the packages, that wrote it"
    )


def _model_key(config: ModelConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", include={"version", "model", "factory", "learn"})


def _same_parameters(model_id: str, name: str, snapshot: dict[str, Any], parameters: dict[str, Any]) -> bool:
    same: bool = snapshot["parameters"] == parameters
    if not same:
        logger.warning("model %s: parameters of %s changed in the configuration: it starts afresh", model_id, name)
    return same

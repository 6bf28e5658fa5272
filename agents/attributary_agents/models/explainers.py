"""Makes the explainers of a model as the configuration describes them."""

from __future__ import annotations

import zlib
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    IncrementalPFI,
    IncrementalSAGE,
    RemovalExplainer,
    make_reservoir,
)

from ..config.models import ModelConfig

_EXPLAINERS: dict[str, type[RemovalExplainer]] = {"pfi": IncrementalPFI, "sage": IncrementalSAGE}


def new_explainer(model_id: str, config: ModelConfig, name: str, model: Any) -> RemovalExplainer:
    """Make the configured explainer of that name, before its first observation."""
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
    """Make the configured change explainer, before its first observation; None where none is configured."""
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

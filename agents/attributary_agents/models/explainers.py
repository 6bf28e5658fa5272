"""Makes the explainers of a model as the configuration describes them."""

from __future__ import annotations

import zlib
from typing import Any

from attributary_explainers import (
    ChangeExplainer,
    RemovalExplainer,
    make_reservoir,
)

from ..config.explainers import EXPLAINERS, parameters_of
from ..config.models import ModelConfig


def new_explainer(model_id: str, config: ModelConfig, name: str, model: Any) -> RemovalExplainer:
    """Make the configured explainer of that name, before its first observation."""
    chosen = config.explainers[name]  # type: ignore[index]
    kind = EXPLAINERS[name]
    arguments = {
        **chosen.model_dump(exclude_none=True, exclude={"reservoir_size", "gap", "reach"}),
        "reservoir": make_reservoir(chosen.reservoir, chosen.reservoir_size, chosen.gap, chosen.reach),
        "alpha": config.alpha if chosen.alpha is None else chosen.alpha,
        "loss": config.loss,
        "groups": config.groups,
        "missing": config.missing,
        "feature_share": config.explain.feature_share,
        "seed": _seed(config.seed, model_id, name),
    }
    known = parameters_of(kind)
    return kind(model, **{name: value for name, value in arguments.items() if name in known})


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

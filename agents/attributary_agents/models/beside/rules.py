"""State rules of mdi and pdp: how they begin and how they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attributary_explainers.monitor.explainers import seed_of

from ...config.explainers import MDI, PDP
from ...config.models import ModelConfig
from ...errors import ConfigError
from ..rules import Kept, ruled
from .dependence import new_dependence, refusal_of_pdp
from .impurity import new_tree_importance, refusal_of_mdi


def _dump(one: Any) -> Any:
    return one.snapshot() if one else None


def _load(state: Any, name: str, stored: dict[str, Any]) -> Any:
    one = getattr(state, name)
    if one is not None and name in stored["same"]:
        one.restore(stored[name])
    return one


OF_MDI = ruled(
    lambda model_id, config, version: new_tree_importance(model_id, config, version.model),
    Kept.WITH_VERSION,
    _dump,
    _load,
)

OF_PDP = ruled(
    lambda model_id, config, version: new_dependence(
        model_id, config, version.model, seed_of(config.seed, model_id, PDP)
    ),
    Kept.WITH_VERSION,
    _dump,
    _load,
)


def check_beside(config: ModelConfig, model: Any) -> None:
    """Refuse a configuration that wants mdi or pdp of a model that has none.

    Raises
    ------
    ConfigError
        Says which, and what to do.
    """
    for _, refusal in refusals(config, model):
        raise ConfigError(refusal)


def refusals(config: ModelConfig, model: Any) -> Iterator[tuple[str, str]]:
    """Yield mdi and pdp if configured but impossible, each with the reason."""
    for name, refusal in ((MDI, refusal_of_mdi(config, model)), (PDP, refusal_of_pdp(config, model))):
        if refusal is not None:
            yield name, refusal

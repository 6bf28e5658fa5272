"""Rules of state fields: how they begin, are kept, stored and loaded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from attributary_explainers import SmoothedMean, SmoothedPrediction
from attributary_explainers.monitor.explainers import seed_of

from ..config.explainers import MDI, PDP
from ..config.models import ModelConfig
from ..errors import ConfigError
from .dependence import new_dependence, refusal_of_pdp
from .impurity import new_tree_importance, refusal_of_mdi
from .versions import Version

logger = logging.getLogger(__name__)


class Kept(Enum):
    """How long a field of a model's state is kept."""

    WITH_VERSION = "until the next version takes over, which begins with its own"
    WITH_MODEL = "until the model begins afresh"
    ALWAYS = "as long as the model id is known: its place in the stream of observations"


@dataclass(frozen=True)
class Rule:
    """Rule of a state field: its beginning, lifetime and storage.

    Attributes
    ----------
    begin
        Makes the value that the field has before the first observation, from model id, configuration and version.
    dump
        Makes plain data of the value.
    load
        Makes the value again from the field's name and all that was stored, for a state that has just begun. `same` in
        what was stored names the explainers whose parameters are still the same.
    """

    begin: Callable[[str, ModelConfig, Version], Any]
    kept: Kept
    dump: Callable[[Any], Any]
    load: Callable[[Any, str, dict[str, Any]], Any]


def _stored(_state: Any, name: str, stored: dict[str, Any]) -> Any:
    return stored[name]


def ruled(
    begin: Callable[[str, ModelConfig, Version], Any],
    kept: Kept,
    dump: Callable[[Any], Any] = lambda value: value,
    load: Callable[[Any, str, dict[str, Any]], Any] = _stored,
) -> dict[str, Rule]:
    """Return the metadata of a field with this rule."""
    return {"rule": Rule(begin, kept, dump, load)}


def plain(begin: Callable[[], Any], kept: Kept) -> dict[str, Rule]:
    """Return the rule of plain data that begins the same for every model."""
    return ruled(lambda *_: begin(), kept)


def smoothed(kind: type[SmoothedMean] | type[SmoothedPrediction]) -> dict[str, Rule]:
    """Return the rule of a mean that restarts with another loss or alpha.

    Another loss may be in another unit.
    """

    def load(state: Any, name: str, stored: dict[str, Any]) -> Any:
        same = (stored["loss"], stored[name]["weights"]["alpha"]) == (state.loss.name, state.config.alpha)
        return kind.from_snapshot(stored[name]) if same else getattr(state, name)

    return ruled(lambda _id, config, _version: kind(config.alpha), Kept.WITH_VERSION, kind.snapshot, load)


def snapshot_of(kind: Any, kept: Kept) -> dict[str, Rule]:
    """Return the rule of a type that makes and reads its own snapshots.

    Its value begins empty.
    """
    return ruled(lambda *_: kind(), kept, kind.snapshot, lambda _state, name, stored: kind.from_snapshot(stored[name]))


def snapshots(values: dict[str, Any]) -> dict[str, Any]:
    """Return the snapshots of several things by their names."""
    return {name: value.snapshot() for name, value in values.items()}


_ALONE = ("change", "mdi", "pdp")
"""Explainers that are fields of the state by themselves."""


def same_explainers(state: Any, snapshot: dict[str, Any]) -> set[str]:
    """Return the names of explainers with unchanged parameters.

    The others are logged with a warning. Old state is never read as new: an explainer with other parameters starts
    afresh.
    """
    same = set()
    known: dict[str, Any] = {**state.explainers, **{name: getattr(state, name) for name in _ALONE}}
    stored = {**snapshot["explainers"], **{name: snapshot.get(name) for name in _ALONE}}
    for name, explainer in known.items():
        if explainer is None or stored.get(name) is None:
            continue
        if stored[name]["parameters"] == explainer.parameters:
            same.add(name)
        else:
            logger.warning(
                "model %s: parameters of %s changed in the configuration: it starts afresh", state.model_id, name
            )
    return same


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

"""Finds out which explainers of a stored state still are those of the configuration."""

from __future__ import annotations

import logging
from typing import Any

logger = logging.getLogger(__name__)

_ALONE = ("change", "mdi", "pdp")
"""Explainers that are fields of the state by themselves."""


def same_explainers(state: Any, snapshot: dict[str, Any]) -> set[str]:
    """Return the names of the explainers of which the snapshot tells with the same parameters; warn of the others.

    Old state is never read as new: an explainer with other parameters starts afresh.
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

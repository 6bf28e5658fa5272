"""What a worker leaves in its table, as plain data that is equal where everything is equal to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.fingerprint import of_state

from attributary_agents.config.settings import Config
from attributary_agents.state.codec import decode_state


def stored_models(table: Mapping[bytes, bytes], config: Config) -> dict[str, Any]:
    """Return the whole states of all models that have one, and which deployment their version is of."""
    found = {}
    for model_id, model in config.models.items():
        if (blob := table.get(model_id.encode())) is not None:
            state = decode_state(model_id, model, blob)
            found[model_id] = {
                **of_state(state),
                "spec": (state.current.spec, state.current.deployed, state.configured),
                "changes": state.n_changes,
                "versions": state.counts.versions,
            }
    return found

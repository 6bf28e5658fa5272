"""What a worker leaves: what it has sent, and its table, equal where everything is equal to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.fingerprint import of_state

from attributary_agents.config.settings import Config
from attributary_agents.state.codec import decode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing
from attributary_agents.worker.storing.cut import Cut
from tests.agents.stand_ins import DEAD_LETTERS, header


class Log:
    """What the topics hold: the sent records, each once for its id."""

    def __init__(self) -> None:
        self.by_id: dict[tuple[str, str], Outgoing] = {}

    def send(self, sent: list[Outgoing]) -> None:
        for outgoing in sent:
            name = "attributary-dlq-id" if outgoing.topic == DEAD_LETTERS else "ce_id"
            known = self.by_id.setdefault((outgoing.topic, header(outgoing, name)), outgoing)
            assert known == outgoing, "a repeated event has the same bytes"


def store_models(partition: Partition, table: dict[bytes, bytes], lag: int = 0) -> Cut:
    """Store the models that have changed, as a worker does before its checkpoint."""
    cut = Cut(partition, lag)
    while not cut.is_encoded:
        store_next(cut, table)
    return cut


def store_next(cut: Cut, table: dict[bytes, bytes]) -> None:
    """Store one model, as a worker does in a slice of a checkpoint."""
    model_id, blob = cut.encode_next()
    table[model_id.encode()] = blob


def store_checkpoint(cut: Cut, table: dict[bytes, bytes]) -> None:
    """Store where the partition was at the cut."""
    table[checkpoint_key(0)] = cut.encode_checkpoint()
    cut.finish()


def checkpoint(partition: Partition, table: dict[bytes, bytes], lag: int = 0) -> None:
    """Store the models that have changed, then where the partition is."""
    store_checkpoint(store_models(partition, table, lag), table)


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

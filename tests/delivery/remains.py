"""What a worker leaves: what it has sent, and its table, equal where everything is equal to the last bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from support.fingerprint import of_state

from attributary_agents.config.settings import Config
from attributary_agents.state.codec import decode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.checkpoint import Cut
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing
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


class Storing:
    """Makes the checkpoints of a partition in slices of one model, between which records can be handled.

    Parameters
    ----------
    write
        Takes a key and a value of the table.
    commit
        Takes the offset of a checkpoint, once it is stored.
    """

    def __init__(
        self,
        partition: Partition,
        write: Callable[[bytes, bytes], None],
        commit: Callable[[int], None] = lambda _offset: None,
    ) -> None:
        self.partition = partition
        self.write = write
        self.commit = commit
        self.cut: Cut | None = None

    def store_slice(self, lag: int = 0) -> None:
        """Store one more model of the checkpoint under way, or begin one; after its last model, make it."""
        if self.cut is None:
            self.cut = Cut(self.partition, lag)
        if not self.cut.is_encoded:
            model_id, blob, *_ = self.cut.encode_next()
            self.write(model_id.encode(), blob)
            return
        self.write(checkpoint_key(0), self.cut.encode_checkpoint())
        self.commit(self.cut.offset)
        self.cut.finish()
        self.cut = None

    def store_models(self, lag: int = 0) -> None:
        """Store all models of the checkpoint under way, or of a new one."""
        self.store_slice(lag)
        while self.cut is not None and not self.cut.is_encoded:
            self.store_slice()

    def finish(self) -> None:
        """Make the checkpoint under way, if there is one."""
        while self.cut is not None:
            self.store_slice()

    def checkpoint(self, lag: int = 0) -> None:
        """Make the checkpoint under way, and then one of everything in one piece, as before a rebalance."""
        self.finish()
        self.store_slice(lag)
        self.finish()


def store_models(partition: Partition, table: dict[bytes, bytes], lag: int = 0) -> None:
    """Store the models that have changed, as a worker does before its checkpoint."""
    Storing(partition, table.__setitem__).store_models(lag)


def checkpoint(partition: Partition, table: dict[bytes, bytes], lag: int = 0) -> None:
    """Store the models that have changed, then where the partition is."""
    Storing(partition, table.__setitem__).checkpoint(lag)


def stored_models(table: Mapping[bytes, bytes], config: Config) -> dict[str, Any]:
    """Return the whole states of all models that have one, and which deployment their version is of."""
    found = {}
    for name, blob in table.items():
        if (model_id := config.finder.id_of_key(name)) is not None:
            state = decode_state(model_id, config.settings_of(model_id), blob)
            found[model_id] = {
                **of_state(state),
                "spec": (state.current.spec, state.current.deployed, state.configured),
                "versions": state.counts.versions,
            }
    return found

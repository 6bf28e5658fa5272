"""Cut: the scope of a checkpoint under way.

Observations beyond it are handled already.

The cut is the partition's last offset, with the counters up to it and the models that had changed, when the checkpoint
began. The states that are stored for it are those of the moment at which each is encoded, and may be ahead of the cut:
a model's own offset has it skip what it contains when that is repeated. So the counters are those of the cut: what is
repeated is counted then.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from ...state.checkpoints import StoredAt, encode_checkpoint, encode_copy
from ...state.codec import encode_state
from ..partition import Partition


class Encoded(NamedTuple):
    """The state of a model, to be written.

    Attributes
    ----------
    share
        Share of the time that explaining took; None where it is not known.
    has_new_stride
        Whether another number of observations is explained from now on.
    """

    model_id: str
    blob: bytes
    share: float | None
    has_new_stride: bool


class Cut:
    """Scope of a partition's checkpoint, and the states still to store.

    Parameters
    ----------
    lag
        Observations of the partition that wait, None where that is not known; by it and the measured times the models'
        budgets are adapted.
    repeats_to
        Last offset that an owner before may have handled: up to there observations are explained as they were then.
    """

    def __init__(self, partition: Partition, lag: int | None, repeats_to: int = -1) -> None:
        counters = partition.counters
        self._partition = partition
        self._repeats_to = repeats_to
        self._counters = replace(
            counters,
            dead_letters=counters.dead_letters.copy(),
            replayed=counters.replayed.copy(),
            origins=counters.origins.copy(),
        )
        self._left = sorted(partition.dirty, reverse=True)
        self._deployed: dict[str, int] = {}
        self.offset = partition.offset
        """The last offset that the checkpoint covers."""
        partition.budget.begin(lag)

    @property
    def is_encoded(self) -> bool:
        """Whether the states of all models that had changed are encoded."""
        return not self._left

    def encode_next(self) -> Encoded:
        """Return the next model's state as it is now, and set its stride.

        The stride is set in the same step, never before.

        What the observations up to now have sent must be awaited before these bytes are written. Where the stride has
        changed, no further observation may be handled before they are durable: the state that a crash leaves would have
        another stride than what was published.
        """
        partition, model_id = self._partition, self._left.pop()
        state = partition.models[model_id]
        stride = state.stride
        # An owner that was killed may have published what follows: it comes again with the same bytes.
        share = partition.budget.adapt(state) if partition.offset >= self._repeats_to else None
        blob = encode_state(state)
        partition.dirty.discard(model_id)
        partition.models.stored[model_id] = StoredAt.of(state.offset, blob)
        self._deployed[model_id] = state.current.deployed
        return Encoded(model_id, blob, share, has_new_stride=state.stride != stride)

    def encode_checkpoint(self) -> bytes:
        """Return the bytes of the checkpoint, to be written after all states.

        All states have to be durable before.
        """
        return encode_checkpoint(self.offset, self._counters, self._partition.models.stored)

    @property
    def stored(self) -> Collection[str]:
        """Ids of the models whose states are encoded for it."""
        return self._deployed

    def encode_copy(self) -> bytes | None:
        """Return the bytes of the checkpoint's copy; None if not needed.

        It is not needed where no record was mapped.
        """
        return encode_copy(self.offset, self._counters)

    def finish(self) -> None:
        """Note that the checkpoint is durable and committed."""
        self._partition.record_checkpoint(self.offset, self._deployed)

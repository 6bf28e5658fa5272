"""Shadow of a partition, to see which rows its models will ask for.

It is a partition in memory that begins in the state of the other.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from attributary_explainers.monitor.events import Event

from ...state.codec import encode_state
from ..dead_letter_log import DeadLetterLog
from ..partition import Partition
from ..records import Record

_OURS = ("attributary_agents", "attributary_explainers")
"""Loggers above all that an observation has said: the library tells of losses and changes."""


class _Silent(DeadLetterLog):
    """Log that drops its dead letters, which come again for real."""

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Forget it."""


class Shadow(Partition):
    """Copy of a partition that handles records and shares nothing with it.

    Models that are not concerned are left out: their records only count.

    Parameters
    ----------
    partition
        The partition as it is now; it is not changed.
    concerned
        Ids of the models that are to be as they are there.
    """

    def __init__(self, partition: Partition, concerned: Collection[str]) -> None:
        stored: dict[bytes, bytes] = {}
        for model_id in concerned:
            if (state := partition.models.get(model_id)) is not None:
                stored[model_id.encode()] = encode_state(state)
        super().__init__(
            partition.topic, partition.number, partition.config, stored.get, None, _Silent(partition.config)
        )
        self.concerned = frozenset(concerned)
        self.offset, self.checkpointed = partition.offset, partition.checkpointed
        self.counters.replayed = partition.counters.replayed.copy()
        self.counters.origins = partition.counters.origins.copy()
        self.models.begin_as(partition.models, concerned)

    def _explain(self, record: Record, events: list[Event]) -> None:
        if self.config.finder.id_of_key(record.key) in self.concerned:
            super()._explain(record, events)


@contextmanager
def unheard() -> Iterator[None]:
    """Suppress logs and warnings inside the block.

    Nothing may wait inside it. The work is done again for real.
    """
    levels = {name: logging.getLogger(name).level for name in _OURS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

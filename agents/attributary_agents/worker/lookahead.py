"""Answers of served models, fetched before observations need them.

A model answers over the network, and an observation may not wait in the middle of its way: it would hold up the event
loop, or be half handled when the partition goes. So a copy of the partition in memory takes the observations that wait,
with placeholders for predictions that have no answer yet, and shows for which rows the models will be called. These are
fetched in few requests, while the partition waits between two observations: checkpoints, rebalances and a stop take
their course. An observation is handled once another copy, which is in the partition's own state, lacks no answer for
it. Where it lacks one, more are fetched: some rows depend on predictions.
"""

from __future__ import annotations

import asyncio
import logging
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from attributary_explainers.monitor.events import Event

from ..config.served import ServedConfig
from ..errors import DamagedStateError
from ..models.artefacts.served.answers import Answers, Call, answering
from ..models.artefacts.served.errors import ServedError
from ..models.artefacts.served.model import SERVED_NAME
from ..state.codec import encode_state
from .dead_letter_log import DeadLetterLog
from .endpoints import Endpoints
from .partition import Partition
from .records import Record, record_from_client

MOST_RECORDS = 64
"""Observations whose answers are fetched at once."""

MOST_ROWS = 10_000
"""Rows after which no further observation is looked at, before those are fetched."""

LOOK_S = 0.02
"""Longest that a copy handles observations in one turn of the event loop; one at least."""

_LOGGERS = ("attributary_agents", "attributary_explainers")


class UnforeseenError(ServedError):
    """Row that a copy of the partition has not shown: a fault of ours.

    Parameters
    ----------
    url
        Address of the model.
    """

    def __init__(self, url: str) -> None:
        super().__init__(f"{url}: rows of the observation had not been foreseen; please report this")


class _Silent(DeadLetterLog):
    """Log that drops its dead letters, which come again for real."""

    def note(self, key: bytes | None, stage: str, reason: str, error: Exception, where: str) -> None:
        """Forget it."""


class PartitionCopy(Partition):
    """Copy of a partition that handles records and shares nothing with it.

    Models that are not among `model_ids` are left out: their records only count.
    """

    def __init__(self, partition: Partition, model_ids: Collection[str]) -> None:
        stored: dict[bytes, bytes] = {}
        for model_id in model_ids:
            if (state := partition.models.get(model_id)) is not None:
                stored[model_id.encode()] = encode_state(state)
        super().__init__(
            partition.topic, partition.number, partition.config, stored.get, None, _Silent(partition.config)
        )
        self.model_ids = frozenset(model_ids)
        self.offset, self.checkpointed = partition.offset, partition.checkpointed
        self.counters.replayed = partition.counters.replayed.copy()
        self.counters.origins = partition.counters.origins.copy()
        self.models.begin_as(partition.models, model_ids)

    def _explain(self, record: Record, events: list[Event]) -> None:
        if self.config.finder.id_of_key(record.key) in self.model_ids:
            super()._explain(record, events)


class Lookahead:
    """Fetcher of the answers that a partition's observations need."""

    def __init__(self, partition: Partition, endpoints: Endpoints, clock: Callable[[], float] = time.monotonic) -> None:
        self._partition = partition
        self._endpoints = endpoints
        self._clock = clock
        self._fetching: asyncio.Future[None] | None = None
        self._fetched_to = -1
        """Offset of the last observation whose answers were fetched."""
        self._copy: PartitionCopy | None = None
        self._in_step: list[object] | None = None
        """How the models of the copy were when it was last known to agree with the partition."""
        self.answers = Answers()

    def copy(self, waiting: Sequence[Any]) -> PartitionCopy | None:
        """Return a copy of the partition with the models that `waiting` concerns.

        None where none of them is served. The copy is of use as long as nothing but these records is handled, each
        after `is_answered`.
        """
        model_ids, copy = self._served(waiting), self._copy
        if not model_ids:
            return None
        if (
            copy is None
            or copy.offset != self._partition.offset
            or not model_ids <= copy.model_ids
            or self._in_step != self._versions(copy)
        ):
            with _quiet():
                copy = PartitionCopy(self._partition, model_ids)
        return copy

    def _versions(self, copy: PartitionCopy) -> list[object]:
        """Return a value that every change of the models but handling changes."""
        models = self._partition.models
        states = [(model_id, models.get(model_id)) for model_id in sorted(copy.model_ids)]
        return [
            (id(state), state and state.stride, id(models.log_if_loaded(model_id)), model_id in models.refused)
            for model_id, state in states
        ]

    def is_answered(self, record: Any, copy: PartitionCopy) -> bool:
        """Return whether an observation lacks no answer, once the copy had it."""
        if record.offset > self._fetched_to and self._served([record]):
            return False
        self._show(copy, record)
        return not self.answers.wanted

    @contextmanager
    def answering(self, copy: PartitionCopy | None) -> Iterator[None]:
        """Use the fetched answers inside the block, in which records are handled.

        Parameters
        ----------
        copy
            Has handled the same records, and goes on with the next ones; None where there is none.
        """
        with answering(self.answers, UnforeseenError):
            yield
        self._copy, self._in_step = copy, None if copy is None else self._versions(copy)
        if self._partition.offset >= self._fetched_to:
            self.answers.clear()

    async def fetch(self, waiting: Sequence[Any]) -> None:
        """Fetch the answers that waiting observations will need.

        Ends when they are there, or when the partition goes.
        """
        calls = await self._calls(waiting)
        view, number = self._endpoints.view, self._partition.number
        for model_id in {call.model_id for call in calls}:
            view.begin_waiting(number, model_id)
        self._fetching = asyncio.ensure_future(self._endpoints.fetch(calls, self.answers))
        try:
            await asyncio.wait([self._fetching])
            if not self._fetching.cancelled():
                self._fetching.result()
        finally:
            self._fetching.cancel()  # does nothing where it is done
            view.end_waiting(number)

    def leave(self) -> None:
        """Give up the requests under way: the partition goes."""
        if self._fetching is not None:
            self._fetching.cancel()

    async def _calls(self, waiting: Sequence[Any]) -> list[Call]:
        """Return the calls that waiting observations will make, as far as known."""
        calls: dict[Any, Call] = {}
        self._copy = None  # the next one goes on with placeholders
        copy, began = self.copy(waiting), self._clock()
        for record in waiting:
            if copy is not None:
                self._show(copy, record)
            calls |= self.answers.wanted
            self._fetched_to = record.offset
            if sum(len(call.rows) for call in calls.values()) >= MOST_ROWS:
                break
            if self._clock() - began >= LOOK_S:
                await asyncio.sleep(0)
                began = self._clock()
        return list(calls.values())

    def _show(self, copy: PartitionCopy, record: Any) -> None:
        """Let a copy handle a record, and note its wanted answers alone."""
        self.answers.wanted.clear()
        self.answers.model_id = self._partition.config.finder.id_of_key(record.key) or ""
        with _quiet(), answering(self.answers):
            copy.handle(record_from_client(record))

    def _served(self, records: Sequence[Any]) -> set[str]:
        """Return the ids of the models of some records that may be served."""
        id_of = self._partition.config.finder.id_of_key
        model_ids = {model_id for key in {record.key for record in records} if (model_id := id_of(key)) is not None}
        return set(filter(self._is_served, model_ids))

    def _is_served(self, model_id: str) -> bool:
        partition = self._partition
        if isinstance(partition.config.settings_of(model_id).model, ServedConfig):
            return True
        if model_id in partition.models.refused:
            return False
        state = partition.models.get(model_id)
        if state is not None and state.asks_endpoints:
            return True
        with suppress(DamagedStateError):  # its observations are dead letters
            return any(SERVED_NAME in entry.model for entry in partition.models.log(model_id).entries)
        return False


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress logs and warnings inside the block, in which nothing may wait.

    The work is done again for real.
    """
    levels = {name: logging.getLogger(name).level for name in _LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)

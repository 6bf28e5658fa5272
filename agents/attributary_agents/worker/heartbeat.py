"""Heartbeat: the choice and sending of models' due statuses.

They are sent beside everything else.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from attributary_explainers.monitor.events import model_guard
from attributary_topics import ModelStatus, encode_json, event_time

from ..models.model_state import ModelState
from .partition import Partition

logger = logging.getLogger(__name__)


def status_of(partition: Partition, model_id: str, per_second: float | None) -> ModelStatus | None:
    """Return a model's status; None if it is neither loaded nor refused.

    Parameters
    ----------
    per_second
        Its observations per second, if that is known.
    """
    if (state := partition.models.get(model_id)) is not None:
        at, labels = state.last_observation_ms, None if state.late is None else state.late.labels
        return ModelStatus(
            model_id=model_id,
            state=_doing(state),
            model_version=state.version,
            n_observations=state.n_observations,
            n_refused=state.n_failed,
            observations_per_second=per_second,
            event_time=None if at is None else event_time(at),
            partition=partition.number,
            n_waiting=None if labels is None else labels.n_waiting,
            n_expired=None if labels is None else labels.n_expired,
            guard=None if state.loss_watch is None else model_guard(state.loss_watch.guard(state.n_observations)),
        )
    if model_id in partition.models.refused:
        return ModelStatus(
            model_id=model_id,
            state="refused",
            model_version=None,
            n_observations=None,
            n_refused=None,
            observations_per_second=None,
            event_time=None,
            partition=partition.number,
        )
    return None


def _doing(state: ModelState) -> str:
    if state.incident_watch is not None and state.incident_watch.open is not None:
        return "changed"
    is_published = any(publication.has_published for publication in state.publications.values())
    return "explained" if is_published else "learning"


EVERY_S = 30.0
"""Least time between two statuses of a model."""

PER_SECOND = 200
"""Most statuses that a worker sends in a second; the others come later."""


class StatusTopic(Protocol):
    """Writes statuses; see `attributary_agents.kafka.statuses`."""

    async def is_there(self) -> bool:
        """Return whether there is such a topic."""
        ...

    async def send(self, records: list[tuple[bytes, bytes]]) -> None:
        """Write keys and values."""
        ...

    async def close(self) -> None:
        """Let go of the brokers."""
        ...


class _Beat(NamedTuple):
    at: float
    n_observations: int


class Heartbeat:
    """Sender of statuses of the models that have changed.

    Sends after a checkpoint, and at most a status of each model in `EVERY_S`.

    What goes wrong with it is said in a line of the log, and nothing else: the worker goes on.

    Parameters
    ----------
    name
        Of the topic.
    topic
        Writes to it.
    """

    def __init__(self, name: str, topic: StatusTopic, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._topic, self._clock = name, topic, clock
        self._waiting: dict[str, Partition] = {}
        """Ids of the models that have changed since their last status; those that wait longest come first."""
        self._last: dict[str, _Beat] = {}
        self._told_refused: set[str] = set()
        self._room, self._room_at = float(PER_SECOND), clock()
        self._sends: asyncio.Task[None] | None = None
        self._is_there: bool | None = None
        self._has_failed = False

    def note(self, partition: Partition, model_ids: Iterable[str]) -> None:
        """Note that models have changed, and that their checkpoint is durable."""
        if self._is_there is False:
            return
        refused = partition.models.refused.keys() - self._told_refused
        self._told_refused |= refused
        for model_id in (*model_ids, *refused):
            self._waiting.setdefault(model_id, partition)

    def tick(self, is_ours: Callable[[Partition], bool]) -> None:
        """Send due statuses, unless earlier statuses are still being sent.

        To be called once a second.

        Parameters
        ----------
        is_ours
            Whether the worker still has the partition: another one tells of its models if not.
        """
        if not self._waiting or self._is_there is False or (self._sends is not None and not self._sends.done()):
            return
        records = self._due(is_ours)
        if records:
            self._sends = asyncio.ensure_future(self._send(records))

    def _due(self, is_ours: Callable[[Partition], bool]) -> list[tuple[bytes, bytes]]:
        now = self._clock()
        self._room = min(self._room + PER_SECOND * (now - self._room_at), float(PER_SECOND))
        self._room_at = now
        records: list[tuple[bytes, bytes]] = []
        for model_id, partition in list(self._waiting.items()):
            if self._room < 1:
                break
            last = self._last.get(model_id)
            if not is_ours(partition):
                del self._waiting[model_id]
            elif last is None or now - last.at >= EVERY_S:
                del self._waiting[model_id]
                if (record := self._record(partition, model_id, last, now)) is not None:
                    records.append(record)
                    self._room -= 1
        return records

    def _record(
        self, partition: Partition, model_id: str, last: _Beat | None, now: float
    ) -> tuple[bytes, bytes] | None:
        state = partition.models.get(model_id)
        n = 0 if state is None else state.n_observations
        # Fewer than before: it has been reset.
        per_second = None if last is None or n < last.n_observations else (n - last.n_observations) / (now - last.at)
        status = status_of(partition, model_id, per_second)
        if status is None:
            return None
        self._last[model_id] = _Beat(now, n)
        return model_id.encode(), encode_json(status)

    async def _send(self, records: list[tuple[bytes, bytes]]) -> None:
        try:
            if self._is_there is None:
                self._is_there = await self._topic.is_there()
                if not self._is_there:
                    self._waiting.clear()
                    logger.warning(
                        "there is no topic %s, or this user may not describe it, so nobody is told how the models are "
                        "doing; `attributary topics create` makes it, and the next start writes to it",
                        self._name,
                    )
                    return
            await self._topic.send(records)
        except Exception as error:  # noqa: BLE001 - whatever it is, the observations must not be held up by it
            if not self._has_failed:
                logger.warning(
                    "%s: statuses cannot be written (%s); the worker goes on without", self._name, _said(error)
                )
            self._has_failed = True
        else:
            if self._has_failed:
                logger.info("%s: statuses are written again", self._name)
            self._has_failed = False

    async def close(self) -> None:
        """Cancel a sending under way and disconnect from the brokers."""
        if self._sends is not None:
            self._sends.cancel()
            await asyncio.gather(self._sends, return_exceptions=True)
        await self._topic.close()


def _said(error: Exception) -> str:
    return " ".join([type(error).__name__, *map(str, error.args)])

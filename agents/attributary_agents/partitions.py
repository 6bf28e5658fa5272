"""One partition's work: its models, what is not yet durable, and its counters.

Plain Python without Faust: what comes in are records, what goes out are `Outgoing`s.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from attributary_topics import (
    REASONS,
    ChangeEvent,
    DeadLetter,
    ImportanceEvent,
    InvalidRecordError,
    Source,
    decode_model_id,
    decode_observation,
    encode_json,
    event_headers,
    fit_dead_letter,
)

from .config import Config
from .errors import StateError
from .prequential import ModelState, StepError, new_state, prequential
from .state_codec import decode_state

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the observations topic, as Kafka has it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def source(self) -> Source:
        """Where it is."""
        return Source(self.topic, self.partition, self.offset)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to send."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


@dataclass
class PartitionCounters:
    """Counters of a partition since its first record ever: they are part of the checkpoint.

    consumed = explained + dead letters, always; `unavailable` counts offsets that were gone from the topic
    (retention) before they could be read, which are in none of the three.
    """

    consumed: int = 0
    explained: int = 0
    unavailable: int = 0
    dead_letters: Counter[str] = field(default_factory=Counter)


class Partition:
    """The work on one assigned partition in one generation of the consumer group.

    Parameters
    ----------
    load
        Key of the state table to the stored bytes, or None: model ids and the checkpoint's own key.
    """

    def __init__(self, topic: str, partition: int, config: Config, load: Callable[[bytes], bytes | None]) -> None:
        self.topic = topic
        self.number = partition
        self.config = config
        self._load = load
        self.models: dict[str, ModelState] = {}
        self.dirty: set[str] = set()
        self.counters, self.checkpointed = decode_checkpoint(load(checkpoint_key(partition)))
        self.offset = self.checkpointed
        """Last offset that has been handled; -1 before the first."""

    @property
    def n_pending(self) -> int:
        """Offsets that are handled and not yet in a checkpoint."""
        return self.offset - self.checkpointed

    def handle(self, record: Record) -> list[Outgoing]:
        """Take one record all the way: decode, predict, explain, learn; or into the dead letters.

        Never raises for what is in the record or for what a model does with it.

        Raises
        ------
        StateError
            The model's stored state cannot be read: to go on would silently forget it.
        """
        if record.offset <= self.offset:
            return []  # delivered again after a restart or rebalance, and already in the checkpoint
        self.offset = record.offset
        self.counters.consumed += 1
        try:
            events = self._explain(record)
        except InvalidRecordError as error:
            return [self._dead_letter(record, "decode", error.reason, error)]
        except _AlreadyFailedError:
            self.counters.dead_letters["model_failed"] += 1
            return []
        except StepError as error:
            self.models[decode_model_id(record.key)].failed_offsets.append(record.offset)
            return [self._dead_letter(record, error.stage, "model_failed", error.error)]
        self.counters.explained += 1
        return events

    def _explain(self, record: Record) -> list[Outgoing]:
        model_id = decode_model_id(record.key)
        model_config = self.config.models.get(model_id)
        if model_config is None:
            known = ", ".join(self.config.models)
            raise InvalidRecordError("unknown_model", "key", f"one of the configured models ({known})", model_id)
        observation = decode_observation(
            record.key, record.value, features=model_config.features, max_bytes=self.config.max_observation_bytes
        )
        state = self._state(model_id)
        if record.offset <= state.offset:
            # A crash came between the model's snapshot and the checkpoint: the model has seen this one, and what
            # followed from it was sent before the snapshot. Only the counters are behind.
            if record.offset in state.failed_offsets:
                raise _AlreadyFailedError
            return []
        state.offset = record.offset
        self.dirty.add(model_id)
        events = prequential(state, observation, record.source, record.timestamp_ms)
        for event in events:
            if isinstance(event, ChangeEvent):
                logger.info(event.sentence)
        return [self._outgoing(event, n, record) for n, event in enumerate(events)]

    def checkpoint_done(self, offset: int) -> None:
        """Everything up to `offset` is durable."""
        self.checkpointed = offset
        for state in self.models.values():
            state.failed_offsets = [failed for failed in state.failed_offsets if failed > offset]

    def restore(self) -> None:
        """Load the configured models whose observations come on this partition.

        Raises
        ------
        StateError
            A stored state cannot be read.
        """
        for model_id, config in self.config.models.items():
            blob = self._load(model_id.encode())
            if blob is not None and model_id not in self.models:
                state = decode_state(model_id, config, blob)
                if state.partition == self.number:
                    self.models[model_id] = state

    def _state(self, model_id: str) -> ModelState:
        state = self.models.get(model_id)
        if state is None:
            blob = self._load(model_id.encode())
            config = self.config.models[model_id]
            state = new_state(model_id, config) if blob is None else decode_state(model_id, config, blob)
            if state.partition not in (-1, self.number):
                raise InvalidRecordError(
                    "model_on_two_partitions",
                    "key",
                    f"observations of {model_id!r} on partition {state.partition}, where they began "
                    "(one partitioner for all producers)",
                    self.number,
                )
            state.partition = self.number
            self.models[model_id] = state
        return state

    def _outgoing(self, event: ImportanceEvent | ChangeEvent, n: int, record: Record) -> Outgoing:
        topics = self.config.kafka.topics
        kind, topic = (
            ("change", topics.changes) if isinstance(event, ChangeEvent) else ("importance", topics.importances)
        )
        headers = event_headers(kind, event.model_id, record.source, record.timestamp_ms, n)
        return Outgoing(topic, event.model_id.encode(), encode_json(event), headers)

    def _dead_letter(self, record: Record, stage: str, reason: str, error: Exception) -> Outgoing:
        self.counters.dead_letters[reason] += 1
        where = f"{record.topic}[{record.partition}]@{record.offset}"
        logger.warning("dead letter %s: %s at %s: %s", where, reason, stage, error)
        letter = fit_dead_letter(
            DeadLetter(
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                source=record.source,
                timestamp_ms=record.timestamp_ms,
                stage=stage,
                reason=reason,
                error=type(error).__name__,
                message=str(error)[:1000],
            ),
            self.config.kafka.max_state_bytes,
        )
        return Outgoing(self.config.kafka.topics.dead_letters, letter.key, letter.value, letter.all_headers())


class _AlreadyFailedError(Exception):
    """The model raised on this record before the restart; its dead letter has been sent."""


def checkpoint_key(partition: int) -> bytes:
    """Key of a partition's checkpoint in the state table; no model id can begin with a control character."""
    return b"\x00checkpoint/%d" % partition


def encode_checkpoint(offset: int, counters: PartitionCounters) -> bytes:
    """The checkpoint of a partition: the last offset whose effects are durable, and the counters up to it."""
    return orjson.dumps(
        {
            "format": 1,
            "offset": offset,
            "consumed": counters.consumed,
            "explained": counters.explained,
            "unavailable": counters.unavailable,
            "dead_letters": dict(counters.dead_letters),
        }
    )


def decode_checkpoint(blob: bytes | None) -> tuple[PartitionCounters, int]:
    """Counters and offset of a stored checkpoint; zeros and -1 where there is none.

    Raises
    ------
    StateError
        The bytes are no checkpoint of this format.
    """
    counters = PartitionCounters(dead_letters=Counter(dict.fromkeys(REASONS, 0)))
    if blob is None:
        return counters, -1
    try:
        data: dict[str, Any] = orjson.loads(blob)
        if data["format"] != 1:
            raise ValueError(f"format {data['format']!r}")
        counters.consumed, counters.explained = data["consumed"], data["explained"]
        counters.unavailable = data["unavailable"]
        counters.dead_letters.update(data["dead_letters"])
        return counters, data["offset"]
    except (ValueError, KeyError, TypeError) as error:
        raise StateError(
            f"a checkpoint in the state's changelog cannot be read ({error!r}): run the release that wrote it, or "
            "delete the changelog topic to start afresh from the observations"
        ) from None

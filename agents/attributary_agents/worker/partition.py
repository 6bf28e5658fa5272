"""Handling of a partition's observations, with its models.

Has also the partition's counters, and all of it that is not yet durable.

Plain Python without Faust: what comes in are records, what goes out are `Outgoing`s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from attributary_explainers.monitor.events import Event
from attributary_explainers.monitor.incident_events import arrived_incidents
from attributary_explainers.monitor.outbox import record_of
from attributary_explainers.wording import show_names
from attributary_topics import (
    OBSERVATION,
    RECORD_HEADER,
    REQUEST,
    IncidentEvent,
    InvalidRecordError,
    Observation,
    decode_model_id,
    find_header,
    kind_of_record,
)

from ..config.settings import Config
from ..errors import DamagedStateError, EndedWorkerError
from ..models.budget import Budget
from ..models.join import arrive
from ..models.prequential import StepError, prequential
from ..state.checkpoints import load_checkpoint
from ..state.names import checkpoint_copy_key, checkpoint_key
from .dead_letter_log import DeadLetterLog
from .models import PartitionModels
from .reading import ObservationReader, direct_reading, takes
from .records import Outgoing, Record, dead_letter

logger = logging.getLogger(__name__)

MOST_READERS = 2**16
"""Keys of templates for which the reader is kept although no model is loaded."""


class Partition:
    """Handler of a partition's observations in a group generation.

    Parameters
    ----------
    load
        Key of the state table to the stored bytes, or None: model ids and the checkpoint's own key.
    clock
        Seconds, by which explaining is kept within its budget; None: everything is explained, as in a replay.
    dead_letter_log
        Says what becomes a dead letter; None makes one for this partition alone.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        config: Config,
        load: Callable[[bytes], bytes | None],
        clock: Callable[[], float] | None = None,
        dead_letter_log: DeadLetterLog | None = None,
    ) -> None:
        self.dead_letter_log = dead_letter_log or DeadLetterLog(config)
        self._direct = direct_reading(config)
        self.topic = topic
        self.budget = Budget(clock)
        self.number = partition
        self.config = config
        self.models = PartitionModels(partition, config, load)
        self._readers: dict[bytes, ObservationReader] = {}
        """Key to what reads the observations of a configured model; no other key is kept."""
        self.dirty: set[str] = set()
        """Ids of the models that have changed since they were last stored."""
        self.counters, self.checkpointed, self._lost = load_checkpoint(
            load, checkpoint_key(partition), checkpoint_copy_key(partition)
        )
        self.offset = self.checkpointed
        """Last offset that has been handled; -1 before the first."""

    @property
    def n_pending(self) -> int:
        """Offsets that are handled and not yet in a checkpoint."""
        return self.offset - self.checkpointed

    def begin_at(self, offset: int) -> None:
        """Start at `offset` if the stored checkpoint is damaged.

        `offset` is that of the first record that is delivered.

        What was committed was in the checkpoint; what lies behind it the models have, or not, by their own offsets.
        """
        if self._lost:
            self._lost, self.offset, self.checkpointed = False, offset - 1, offset - 1
            self.counters.origins.note_gap()

    def handle(self, record: Record) -> list[Outgoing]:
        """Handle a record completely, or turn it into a dead letter.

        Completely: decode, predict, explain, learn.

        Never raises for what is in the record or for what a model does with it.

        Raises
        ------
        StateError
            The model's stored state cannot be used by this release or under this configuration: to go on would
            silently forget it.
        """
        if record.offset <= self.offset:
            return []  # delivered again after a restart or rebalance, and already in the checkpoint
        self.offset = record.offset
        self.counters.consumed += 1
        known = self.models.known
        if record.timestamp_ms > known.now_ms:
            known.now_ms = record.timestamp_ms
        events: list[Event] = []
        try:
            if (record.headers or record.unread is not None) and self._is_dropped(record):
                return []
            self._explain(record, events)
        except InvalidRecordError as error:
            return [self._dead_letter(record, "decode", error.reason, error)]
        except DamagedStateError as error:
            return [self._dead_letter(record, "restore", error.reason, error)]
        except _PassedOverError:
            self.counters.origins.note_passed_over()
            return []
        except _AlreadyFailedError as error:
            self.counters.dead_letters[error.reason] += 1
            return []
        except StepError as error:
            self.models[decode_model_id(record.key)].failed_offsets[record.offset] = error.reason
            # A new version may have taken over just before.
            failed = self._dead_letter(record, error.stage, error.reason, error.error, decode_model_id(record.key))
            return [*self._publish(events, record), failed]
        self.counters.used += 1
        return self._publish(events, record)

    def refuse(self, record: Record) -> list[Outgoing]:
        """Make a dead letter, unread, of a record that has ended workers."""
        if record.offset <= self.offset:
            return []
        self.offset = record.offset
        self.counters.consumed += 1
        try:
            if self._is_dropped(record):
                return []
        except InvalidRecordError:
            pass  # it is refused anyway
        error = EndedWorkerError(
            "two workers ended while they handled this observation or one near it, and so did a process of its own"
        )
        return [self._dead_letter(record, "handle", error.reason, error)]

    def _is_dropped(self, record: Record) -> bool:
        """Return whether a record was seen before and is to be dropped.

        It is a mapped record, or a dead letter that was sent again.
        """
        counters = self.counters
        return counters.replayed.is_repeat(record.headers) or not takes(counters.origins, record)

    def _explain(self, record: Record, events: list[Event]) -> None:
        if record.unread is not None:
            record.check_read()
        value = record.value
        if self._direct is not None:
            value = self._direct.value_of(record)
            if value is None:
                raise _PassedOverError
        reader = self._readers.get(record.key) or self._reader(record.key)  # type: ignore[arg-type]  # None is no key
        model_id = reader.model_id
        kind = OBSERVATION
        if record.headers:
            kind = kind_of_record(find_header(record.headers, RECORD_HEADER))
        if reader.is_whole:
            if kind != OBSERVATION:
                reader.refuse(kind)
            observation = reader.read(value)
            record.time_ms = observation.time_ms
        else:
            arrival = reader.read_arrival(value, kind)
            record.time_ms = arrival.time_ms
        state = self.models.find_or_make(model_id)
        if reader.template is not None:
            self.models.known.note_used(reader.template, model_id)
        if record.offset <= state.offset:
            # A crash came between the model's snapshot and the checkpoint: the model has seen this one, and what
            # followed from it was sent before the snapshot. Only the counters are behind.
            if record.offset in state.failed_offsets:
                raise _AlreadyFailedError(state.failed_offsets[record.offset])
            return
        state, changes = self.models.take_over(state, record)
        events += changes
        state.offset = record.offset
        self.dirty.add(model_id)
        kept, is_new = None, True
        if not reader.is_whole:
            ready = arrive(state, arrival, record.timestamp_ms, is_request=kind == REQUEST)
            waits_for_label = state.late is not None and state.late.labels is not None
            is_new = isinstance(arrival, Observation) or not waits_for_label
            if ready is None:
                if isinstance(arrival, Observation) and waits_for_label:
                    events += arrived_incidents(state, arrival.x, record.source, record.timestamp_ms, len(events))
                return
            observation, kept = ready
        timer = self.budget.timer(state)
        source, at = record.source, record.timestamp_ms
        try:
            events += prequential(state, observation, source, at, timer, len(events), kept, is_new=is_new)
        except StepError as error:
            recovered = self.models.recover(state, observation, error, record, len(events))
            if recovered is None:
                raise
            state, told = recovered
            events += told
            events += prequential(state, observation, source, at, timer, len(events), kept, is_new=is_new)
        if reader.template is not None:
            self.models.known.n_handled[reader.template] += 1

    def _reader(self, key: bytes | None) -> ObservationReader:
        """Create the reader for the model that a record's key names."""
        model_id = decode_model_id(key)
        config = self.config.find(model_id)
        if config is None:
            known = show_names(self.config.models)
            raise InvalidRecordError("unknown_model", "key", f"one of the configured models ({known})", model_id)
        assert key is not None  # or it were no model id
        template = self.config.finder.template_of(model_id)
        reader = ObservationReader(key, config, self.config.max_observation_bytes, template)
        if template is None or len(self._readers) < MOST_READERS or model_id in self.models:
            self._readers[key] = reader
        return reader

    def rest_idle(self) -> dict[str, str]:
        """Drop idle models from memory; return their ids and templates.

        To be called between two steps, when all that is not dirty is durable: the next record finds it stored.
        """
        known, gone = self.models.known, {}
        for model_id in known.idle():
            if model_id not in self.dirty and self.models.rest(model_id):
                gone[model_id] = known.template_of(model_id) or ""
                self._readers.pop(model_id.encode(), None)
                self.budget.forget(model_id)
        self.models.forget_logs()
        if len(self._readers) >= MOST_READERS:  # of ids whose observations cannot be used
            self._readers = {key: one for key, one in self._readers.items() if one.model_id in self.models}
        return gone

    def _publish(self, events: list[Event], record: Record) -> list[Outgoing]:
        if not events:
            return []
        outgoing = [self._outgoing(event, n, record) for n, event in enumerate(events)]
        for event in events:
            if isinstance(event, IncidentEvent):
                logger.log(_level(event), event.sentence)
        return outgoing

    def record_checkpoint(self, offset: int, deployed: Mapping[str, int]) -> None:
        """Note that everything up to `offset` is durable.

        Parameters
        ----------
        deployed
            Model id to `current.deployed` of the state that was stored for it: what came later is not in there.
        """
        self.checkpointed = self.models.durable = offset
        for model_id, state in self.models.items():
            if state.failed_offsets:
                state.failed_offsets = {n: reason for n, reason in state.failed_offsets.items() if n > offset}
            state.stored_deployed = deployed.get(model_id, state.stored_deployed)

    def _outgoing(self, event: Event, n: int, record: Record) -> Outgoing:
        kafka = self.config.kafka
        made = record_of(event, kafka.topics, kafka.shards, record.source, record.timestamp_ms, n)
        return Outgoing(*made, record.offset, event.model_id)

    def _dead_letter(
        self, record: Record, stage: str, reason: str, error: Exception, model_id: str | None = None
    ) -> Outgoing:
        self.counters.dead_letters[reason] += 1
        return self.dead_letter(record, stage, reason, error, model_id)

    def dead_letter(
        self, record: Record, stage: str, reason: str, error: Exception, model_id: str | None = None
    ) -> Outgoing:
        """Make and log the dead letter of a record of this partition.

        The record is of either topic.

        Parameters
        ----------
        model_id
            The model whose state contains the record, if one does.
        """
        self.dead_letter_log.note(record.key, stage, reason, error, str(record))
        return dead_letter(record, stage, reason, error, self.config, model_id)


def _level(event: IncidentEvent) -> int:
    """Return the log level of an incident's revision.

    That an incident lasts, or is over, wakes nobody.
    """
    if event.life in ("over", "withdrawn") or event.reason == "lasts":
        return logging.INFO
    if event.severity == "critical":
        return logging.ERROR
    return logging.WARNING if event.severity == "warning" and event.life == "confirmed" else logging.INFO


class _PassedOverError(Exception):
    """Record that its source says is no observation.

    Its topic is not ours.
    """


class _AlreadyFailedError(Exception):
    """Record on which the model has failed before the restart.

    Its dead letter, of this reason, has been sent.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)

"""The observations of one partition: its models, what is not yet durable, and its counters.

Plain Python without Faust: what comes in are records, what goes out are `Outgoing`s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from attributary_explainers import load_model
from attributary_topics import (
    ChangeEvent,
    ImportanceEvent,
    InvalidRecordError,
    decode_model_id,
    decode_observation,
    encode_json,
    event_headers,
)

from ..config.settings import Config
from ..errors import DamagedStateError
from ..models.budget import Budget
from ..models.events import change_summary
from ..models.limits import check_size
from ..models.model_state import ModelState, new_state
from ..models.prequential import StepError, prequential
from ..models.swap import begin_with, swap
from ..models.versions import Version, configured_as, configured_version
from ..state.checkpoints import load_checkpoint
from ..state.codec import decode_state, how_to_mend
from ..state.deployment_log import DeploymentLog, decode_log
from ..state.names import checkpoint_key, control_key
from .records import Outgoing, Record, dead_letter

logger = logging.getLogger(__name__)


class Partition:
    """Handles the observations of one partition in one generation of the consumer group.

    Parameters
    ----------
    load
        Key of the state table to the stored bytes, or None: model ids and the checkpoint's own key.
    clock
        Seconds, by which explaining is kept within its budget; None: everything is explained, as in a replay.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        config: Config,
        load: Callable[[bytes], bytes | None],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.topic = topic
        self.budget = Budget(clock)
        self.number = partition
        self.config = config
        self._load = load
        self.models: dict[str, ModelState] = {}
        self.logs: dict[str, DeploymentLog] = {}
        self._configured: dict[str, dict[str, Any]] = {}
        """Model id to its `configured_as`, which every observation is compared with."""
        self.dirty: set[str] = set()
        self.refused: dict[str, DamagedStateError] = {}
        """Models whose stored state is damaged: their observations go to the dead letters."""
        self.counters, self.checkpointed, self._lost = load_checkpoint(load, checkpoint_key(partition))
        self.offset = self.checkpointed
        """Last offset that has been handled; -1 before the first."""

    @property
    def n_pending(self) -> int:
        """Offsets that are handled and not yet in a checkpoint."""
        return self.offset - self.checkpointed

    @property
    def changed(self) -> list[ModelState]:
        """The states that have changed since they were last stored, in the order of their model ids."""
        return [self.models[model_id] for model_id in sorted(self.dirty)]

    def begin_at(self, offset: int) -> None:
        """Go on at `offset`, the first record that is delivered, if the stored checkpoint is damaged.

        What was committed was in the checkpoint; what lies behind it the models have, or not, by their own offsets.
        """
        if self._lost:
            self._lost, self.offset, self.checkpointed = False, offset - 1, offset - 1

    def handle(self, record: Record) -> list[Outgoing]:
        """Take one record all the way: decode, predict, explain, learn; or into the dead letters.

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
        events: list[ImportanceEvent | ChangeEvent] = []
        try:
            self._explain(record, events)
        except InvalidRecordError as error:
            return [self._dead_letter(record, "decode", error.reason, error)]
        except DamagedStateError as error:
            return [self._dead_letter(record, "restore", "damaged_state", error)]
        except _AlreadyFailedError:
            self.counters.dead_letters["model_failed"] += 1
            return []
        except StepError as error:
            self.models[decode_model_id(record.key)].failed_offsets.append(record.offset)
            # A new version may have taken over just before.
            return [*self._publish(events, record), self._dead_letter(record, error.stage, "model_failed", error.error)]
        self.counters.used += 1
        return self._publish(events, record)

    def _explain(self, record: Record, events: list[ImportanceEvent | ChangeEvent]) -> None:
        model_id = decode_model_id(record.key)
        model_config = self.config.models.get(model_id)
        if model_config is None:
            known = ", ".join(self.config.models)
            raise InvalidRecordError("unknown_model", "key", f"one of the configured models ({known})", model_id)
        observation = decode_observation(
            record.key, record.value, features=model_config.features, max_bytes=self.config.max_observation_bytes
        )
        check_size(observation, model_config)
        state = self.state(model_id)
        if record.offset <= state.offset:
            # A crash came between the model's snapshot and the checkpoint: the model has seen this one, and what
            # followed from it was sent before the snapshot. Only the counters are behind.
            if record.offset in state.failed_offsets:
                raise _AlreadyFailedError
            return
        state = self._take_over(state, record, events)
        state.offset = record.offset
        self.dirty.add(model_id)
        timer = self.budget.timer(model_id)
        events += prequential(state, observation, record.source, record.timestamp_ms, timer)

    def _take_over(self, state: ModelState, record: Record, events: list[ImportanceEvent | ChangeEvent]) -> ModelState:
        """Put the version in place that is due before this observation, by the models topic or the configuration."""
        config, model_id = state.config, state.model_id
        configured, log = self._configured_as(model_id), self.log(model_id)
        entry = log.due(state, configured, record.offset) if log.entries else None
        if entry is None and state.configured == configured:
            return state
        found: list[ChangeEvent] = []
        try:
            if entry is None:
                new = configured_version(config, deployed=log.outdated(configured))
            else:
                new = Version(entry.version, entry.spec, load_model(entry.model), entry.offset)
            if state.n_observations == state.n_failed == 0:
                swapped = begin_with(state, new)
            else:
                swapped, found = swap(state, new, record.source, record.timestamp_ms)
        except Exception:
            if entry is None:
                raise  # the worker has made the configured model when it started
            # It could when it was deployed. The last version goes on: losing the observations would be worse.
            logger.exception("model %s: version %s stays, %s cannot take over", model_id, state.version, entry.version)
            state.refuse_deployment(entry.offset)
            return self._take_over(state, record, events)
        self.models[model_id] = swapped
        events += found
        return swapped

    def _configured_as(self, model_id: str) -> dict[str, Any]:
        if model_id not in self._configured:
            self._configured[model_id] = configured_as(self.config.models[model_id])
        return self._configured[model_id]

    def _publish(self, events: list[ImportanceEvent | ChangeEvent], record: Record) -> list[Outgoing]:
        outgoing = [self._outgoing(event, n, record) for n, event in enumerate(events)]
        for event, sent in zip(events, outgoing, strict=True):
            if isinstance(event, ChangeEvent):
                logger.info(event.sentence)
                self.models[event.model_id].last_change = change_summary(event, sent.headers, record.timestamp_ms)
        return outgoing

    def record_checkpoint(self, offset: int) -> None:
        """Note that everything up to `offset` is durable."""
        self.checkpointed = offset
        for state in self.models.values():
            state.failed_offsets = [failed for failed in state.failed_offsets if failed > offset]
            state.stored_deployed = state.current.deployed

    def restore(self, model_id: str) -> None:
        """Load a configured model where its observations come on this partition.

        Raises
        ------
        StateError
            The stored state cannot be used by this release or under this configuration.
        """
        if model_id in self.models:
            return
        try:
            state = self._stored(model_id)
        except DamagedStateError:
            return  # logged, and a dead letter of each of its observations says it again
        if state is not None and state.partition == self.number:
            self.models[model_id] = state

    def _stored(self, model_id: str) -> ModelState | None:
        if model_id in self.refused:
            raise self.refused[model_id]
        try:
            blob = self._load(model_id.encode())
            return None if blob is None else decode_state(model_id, self.config.models[model_id], blob)
        except DamagedStateError as error:
            message = f"{error}. Its observations go to the dead letters. {how_to_mend(model_id)}"
            self.refused[model_id] = DamagedStateError(message)
            logger.error("model %s is refused: %s", model_id, message)
            raise self.refused[model_id] from None

    def log(self, model_id: str) -> DeploymentLog:
        """Load, once, the deployments of a model that may have come after its stored state, and return them.

        Raises
        ------
        StateError
            The stored ones cannot be read.
        """
        if model_id not in self.logs:
            self.logs[model_id] = decode_log(model_id, self._load(control_key(model_id, self.number)))
        return self.logs[model_id]

    def known(self, model_id: str) -> ModelState | None:
        """Return the state of a model; None before its first observation on this partition.

        Raises
        ------
        StateError, InvalidRecordError
            As for `state`.
        """
        if model_id not in self.models and self._stored(model_id) is None:
            return None
        return self.state(model_id)

    def state(self, model_id: str) -> ModelState:
        """Return the state of a configured model, loaded or new.

        Raises
        ------
        DamagedStateError
            The stored state is not what a worker has written.
        StateError
            It cannot be used by this release or under this configuration.
        InvalidRecordError
            The model's observations began on another partition.
        """
        state = self.models.get(model_id)
        if state is None:
            state = self._stored(model_id) or new_state(model_id, self.config.models[model_id])
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
        return dead_letter(record, stage, reason, error, self.config)


class _AlreadyFailedError(Exception):
    """The model raised on this record before the restart; its dead letter has been sent."""

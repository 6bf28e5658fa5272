"""Merges of sharded models on a partition of the topic of shards.

They are of the models whose ids belong to that partition.

Plain Python without Faust: a record comes in; what is to be stored and sent goes out.

An event follows from one record and from what is stored, so it is the same whenever the record is delivered again; and
a record whose content is in the merge already changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from attributary_explainers.wording import show_names
from attributary_topics import (
    InvalidRecordError,
    ShardImportance,
    decode_model_id,
    decode_shard,
    encode_json,
    event_headers,
)

from ...errors import DamagedStateError
from ...state.checkpoints import PartitionCounters
from ...state.names import merge_key
from ..deployments import Outcome
from ..partition import Partition
from ..records import Outgoing, Record
from .merge import MergedModel, decode_merge, encode_merge

logger = logging.getLogger(__name__)


class PartitionMerges:
    """Handler of a partition of the topic of shards.

    Parameters
    ----------
    partition
        The observations' partition of the same number, in the same generation of the group.
    load
        Key of the state table to the stored bytes, or None.

    Attributes
    ----------
    counters
        Of the records since the worker has had the partition.
    models
        Model id to merge.
    """

    def __init__(self, partition: Partition, load: Callable[[bytes], bytes | None]) -> None:
        self._partition = partition
        self._load = load
        self._config = partition.config
        self.topic = self._config.kafka.shards
        self.counters = PartitionCounters()
        self.models: dict[str, MergedModel] = {}

    def restore(self, model_id: str) -> None:
        """Load a model's stored merge, if any; a damaged merge starts afresh."""
        blob = None
        try:
            blob = self._load(merge_key(model_id, self._partition.number))
            if blob is not None:
                self.models[model_id] = decode_merge(model_id, blob)
        except DamagedStateError as error:
            logger.error("%s. It begins afresh, and is whole again once each shard has reported", error)

    def _check(self, said: ShardImportance) -> None:
        """Check that a shard of this group can have said it."""
        topic, n = self._config.kafka.topics.observations, self._config.kafka.partitions
        if said.source.topic != topic or said.source.partition >= n:
            place = f"{said.source.topic}[{said.source.partition}]"
            raise InvalidRecordError("wrong_type", "source", f"one of the {n} partitions of {topic}", place)
        known = self._config.models[said.model_id].explainers.by_removal
        if said.explainer not in known:
            raise InvalidRecordError("wrong_type", "explainer", f"one of {show_names(known)}", said.explainer)

    def take(self, record: Record) -> Outcome:
        """Merge a shard's record, or turn it into a dead letter.

        Never raises for what is in the record.
        """
        self.counters.consumed += 1
        outcome = Outcome()
        try:
            record.check_read()
            model_id = decode_model_id(record.key)
            if model_id not in self._config.sharded:
                known = show_names(sorted(self._config.sharded))
                raise InvalidRecordError("unknown_model", "key", f"one of the sharded models ({known})", model_id)
            said = decode_shard(record.key, record.value, max_bytes=self._config.kafka.max_record_bytes)
            self._check(said)
        except InvalidRecordError as error:
            self.counters.dead_letters[error.reason] += 1
            outcome.outgoing.append(self._partition.dead_letter(record, "decode", error.reason, error))
            return outcome
        self.counters.used += 1
        model = self.models.setdefault(model_id, MergedModel(model_id))
        event = model.take(said, record.source)
        if event is not None:
            headers = event_headers("importance", model_id, record.source, said.timestamp_ms, 0)
            topic = self._config.kafka.topics.importances
            outcome.outgoing.append(Outgoing(topic, model_id.encode(), encode_json(event), headers, record.offset))
        outcome.writes.append((merge_key(model_id, self._partition.number), encode_merge(model)))
        return outcome

"""Merges of the shards of sharded models, and their stored state.

They are of the models whose ids belong to a partition of the topic of shards. The last report of each shard is kept,
and which reports belong together is decided here.

Plain Python without Faust: a record comes in; what is to be stored and sent goes out. An event follows from one record
and from what is stored, so it is the same whenever the record is delivered again; and a record whose content is in the
merge already changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from attributary_explainers import MergedImportance
from attributary_explainers.monitor.events import estimate_of, merged_event
from attributary_explainers.wording import show_names
from attributary_topics import (
    ImportanceEvent,
    InvalidRecordError,
    ShardImportance,
    Source,
    decode_model_id,
    decode_shard,
    encode_json,
    event_headers,
)

from ..errors import DamagedStateError, StateError
from ..state.checkpoints import PartitionCounters
from ..state.codec import pack, unpack
from ..state.names import merge_key
from .deployments import Outcome
from .partition import Partition
from .records import Outgoing, Record

logger = logging.getLogger(__name__)


MAGIC = b"ATH1"

KINDS = 16
"""How many of the latest kinds of estimates are told apart."""


class MergedExplainer:
    """Merge of the estimates of an explainer of a sharded model.

    Only estimates of one *kind* are merged: of one version of the model, by one set of parameters. The newest kind is
    the one that was first reported last. When the first shard reports a new kind, the estimates of the kind before are
    dropped, and each shard is in the merge again from the moment on at which it reports the new one. A shard that still
    reports an older kind is behind, and is left out, unless it has reported the newest one already: then it has gone
    back, by a deployment of an older version, and the others are going to follow.
    """

    def __init__(self, alpha: float) -> None:
        self.merged = MergedImportance(alpha)
        self.last: dict[int, ShardImportance] = {}
        """By shard: what it has said last, of any kind."""
        self._kinds: list[tuple[str, str]] = []
        """The kinds, by when each was first reported or gone back to: the last is merged."""

    @property
    def shards(self) -> dict[int, ShardImportance]:
        """Last reports of the shards that are in the merge, by shard."""
        return {number: self.last[number] for number in self.merged.weights}

    @property
    def losses(self) -> tuple[float | None, float | None]:
        """Smoothed losses of the model and of its mean prediction.

        They are those in the merge; None where no shard knows them.
        """
        said = self.shards.items()
        return (
            self.merged.mean({number: one.model_loss for number, one in said}),
            self.merged.mean({number: one.baseline_loss for number, one in said}),
        )

    @property
    def latest(self) -> ShardImportance | None:
        """Latest report in the merge by observation time; None if empty."""
        return max(self.shards.values(), key=lambda said: (said.timestamp_ms, said.source.partition), default=None)

    def take(self, said: ShardImportance) -> bool:
        """Take in a shard's report; return whether it is new and merged.

        A shard that was restarted repeats what it has said, with the same source: that is no news.
        """
        number = said.source.partition
        before = self.last.get(number)
        if before is not None and said.source.offset <= before.source.offset:
            return False
        self.last[number] = said
        kind = _kind(said)
        goes_back = before is not None and self._kinds[-1:] == [_kind(before)]
        if kind not in self._kinds or (kind != self._kinds[-1] and goes_back):
            self._kinds = [*(one for one in self._kinds if one != kind), kind][-KINDS:]
            self.merged = MergedImportance(said.alpha)
        if kind != self._kinds[-1]:
            return False
        self.merged.update(number, estimate_of(said))
        return True

    def snapshot(self) -> dict[str, Any]:
        """Return plain data to restore from."""
        return {
            "merged": self.merged.snapshot(),
            "last": {number: encode_json(said) for number, said in self.last.items()},
            "kinds": self._kinds,
        }

    @classmethod
    def from_snapshot(cls, model_id: str, snapshot: Mapping[str, Any]) -> MergedExplainer:
        """Return the merge that the snapshot was taken of."""
        merge = cls(snapshot["merged"]["alpha"])
        merge.merged = MergedImportance.from_snapshot(snapshot["merged"])
        merge.last = {number: decode_shard(model_id.encode(), said) for number, said in snapshot["last"].items()}
        merge._kinds = [tuple(kind) for kind in snapshot["kinds"]]
        return merge


def _kind(said: ShardImportance) -> tuple[str, str]:
    return said.model_version, said.parameters


class MergedModel:
    """Merges of the shards of a model, by explainer."""

    def __init__(self, model_id: str) -> None:
        self.model_id = model_id
        self.explainers: dict[str, MergedExplainer] = {}

    def take(self, said: ShardImportance, source: Source) -> ImportanceEvent | None:
        """Take in a shard's report; return the event that follows, or None."""
        merge = self.explainers.setdefault(said.explainer, MergedExplainer(said.alpha))
        if not merge.take(said):
            return None
        return merged_event(merge.merged, merge.shards, merge.losses, said.source.partition, source)

    @property
    def n_observations(self) -> int:
        """Number of observations the shards had handled at their last reports.

        Counted whatever the version.
        """
        last: dict[int, int] = {}
        for merge in self.explainers.values():
            for number, said in merge.last.items():
                last[number] = max(last.get(number, 0), said.observation)
        return sum(last.values())


def encode_merge(model: MergedModel) -> bytes:
    """Return the bytes to store."""
    merges = {name: merge.snapshot() for name, merge in model.explainers.items()}
    return pack(MAGIC, {"explainers": merges})


def decode_merge(model_id: str, blob: bytes) -> MergedModel:
    """Return the stored merge of a model.

    Raises
    ------
    DamagedStateError
        The bytes are torn, or of another format: the merge begins afresh, and lacks nothing once each shard has
        reported again.
    """
    model = MergedModel(model_id)
    try:
        for name, snapshot in unpack(MAGIC, blob)["explainers"].items():
            model.explainers[name] = MergedExplainer.from_snapshot(model_id, snapshot)
    except (StateError, InvalidRecordError, KeyError, TypeError, ValueError) as error:
        raise DamagedStateError(f"the stored merge of the shards of {model_id}: {error}") from error
    return model


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

"""Control records of a partition of the models topic.

Decides what follows from each record for the models on that partition.

Plain Python without Faust: a record comes in; what is to be stored and sent goes out, and is stored by the worker
before any further observation of the partition is handled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from attributary_topics import Deployment, InvalidRecordError, replayed_id

from ..errors import DamagedStateError, DeploymentError
from ..models.deployments import Job, decode, prepare
from ..models.from_mlflow.loading import fetched_files, with_remedy
from ..models.versions import configured_as
from ..state.checkpoints import encode_checkpoint, load_checkpoint
from ..state.deployment_log import Entry, encode_log
from ..state.names import control_checkpoint_key, control_key
from .partition import Partition
from .records import Outgoing, Record

logger = logging.getLogger(__name__)

Make = Callable[[Deployment], bytes]


@dataclass
class Outcome:
    """Effects of a control record, to be applied in order.

    Await `outgoing` first, then store `writes` in their order, each before the next.
    """

    outgoing: list[Outgoing] = field(default_factory=list)
    writes: list[tuple[bytes, bytes]] = field(default_factory=list)


class PartitionControl:
    """Handler of a partition's control records.

    Parameters
    ----------
    partition
        The observations' partition of the same number, in the same generation.
    load
        Key of the state table to the stored bytes, or None.
    """

    def __init__(self, topic: str, partition: Partition, load: Callable[[bytes], bytes | None]) -> None:
        self.topic = topic
        self.partition = partition
        self.counters, self.offset, self._lost = load_checkpoint(load, control_checkpoint_key(partition.number))

    def begin_at(self, offset: int) -> None:
        """Start at `offset` if the stored checkpoint is damaged.

        `offset` is that of the first record that is delivered.
        """
        if self._lost:
            self._lost, self.offset = False, offset - 1

    def find_wanted(self, record: Record) -> Deployment | None:
        """Return the deployment whose model `take` will ask for, or None.

        Raises
        ------
        StateError
            As for `take`.
        """
        if record.offset <= self.offset or self.counters.replayed.knows(replayed_id(record.headers)):
            return None
        try:
            deployment = decode(self.partition.config, record.key, record.value)
            return deployment if self._is_new(deployment, record.offset) else None
        except (InvalidRecordError, DamagedStateError):
            return None  # a dead letter

    def take(self, record: Record, backlog_end: int, make: Make | None = None) -> Outcome:
        """Handle a control record: a new deployment, or a dead letter.

        A deployment holds from the next observation on.

        Never raises for what is in the record.

        Parameters
        ----------
        backlog_end
            The last observation that there was when the partition became ours. Up to it an earlier owner may have
            handled them, and its events have been read: for those no other version can hold any more, even where they
            are to be repeated.
        make
            Returns the bytes of a deployment's model, or raises DeploymentError; None builds it in this process.

        Raises
        ------
        StateError
            The model's stored state or deployments cannot be used by this release.
        """
        if record.offset <= self.offset:
            return Outcome()  # delivered again: the state table has it
        self.offset = record.offset
        self.counters.consumed += 1
        outcome = Outcome()
        if self.counters.replayed.is_repeat(record.headers):
            outcome.writes.append(self._checkpoint())
            return outcome
        stage, reason = "decode", ""
        try:
            record.check_read()
            deployment = decode(self.partition.config, record.key, record.value)
            stage = "deploy"
            outcome.writes += self._deploy(deployment, record.offset, backlog_end, make or self._make)
            self.counters.used += 1
        except (InvalidRecordError, DeploymentError) as error:
            reason = error.reason
            self.counters.dead_letters[reason] += 1
            outcome.outgoing.append(self.partition.dead_letter(record, stage, reason, error))
        except DamagedStateError as error:
            self.counters.dead_letters[error.reason] += 1
            outcome.outgoing.append(self.partition.dead_letter(record, "restore", error.reason, error))
        # After the deployment itself: a crash in between has it delivered again, and its offset skips it.
        outcome.writes.append(self._checkpoint())
        return outcome

    def _checkpoint(self) -> tuple[bytes, bytes]:
        blob = encode_checkpoint(self.offset, self.counters, self.partition.models.stored_logs)
        return control_checkpoint_key(self.partition.number), blob

    def _make(self, deployment: Deployment) -> bytes:
        config = self.partition.config
        with fetched_files(config, deployment.spec) as folder:
            return prepare(Job.of(config, deployment, folder))

    def _is_new(self, deployment: Deployment, offset: int) -> bool:
        """Return whether a deployment is not stored and not the last version."""
        partition, model_id = self.partition, deployment.model_id
        state, log = partition.models.find(model_id), partition.models.log(model_id)
        if offset <= log.offset:
            return False  # stored before the crash, but not counted
        if state is None:
            partition.models.known.check_room(model_id)
        config = partition.config.settings_of(model_id)
        last = log.last(state, configured_as(config), follows=config.registered is not None)
        return last != (deployment.version, deployment.spec)

    def _deploy(self, deployment: Deployment, offset: int, backlog_end: int, make: Make) -> list[tuple[bytes, bytes]]:
        partition, model_id = self.partition, deployment.model_id
        if not self._is_new(deployment, offset):
            logger.info("model %s: version %s is deployed already; ignored", model_id, deployment.version)
            return []
        state, log = partition.models.find(model_id), partition.models.log(model_id)
        configured = configured_as(partition.config.settings_of(model_id))
        try:
            model = make(deployment)
        except DeploymentError as error:
            raise with_remedy(deployment, error) from error
        # Without a version nobody has handled any observation of the model: its first one holds for all of them.
        is_first = partition.models.awaits_version(model_id)
        after = partition.offset if is_first else max(partition.offset, backlog_end)
        entry = Entry(offset, after, deployment.version, deployment.spec, configured, model)
        unseen_from = (state.offset if state else -1) if after == partition.offset else None
        longer = log.with_entry(entry, state.stored_deployed if state else -1, unseen_from)
        blob = encode_log(longer)
        partition.models.replace_log(model_id, longer, blob)
        logger.info(
            "model %s: version %s takes over after observation %s[%d]@%d (%s[%d]@%d)",
            model_id,
            deployment.version,
            partition.topic,
            partition.number,
            after,
            self.topic,
            partition.number,
            offset,
        )
        return [(control_key(model_id, partition.number), blob)]

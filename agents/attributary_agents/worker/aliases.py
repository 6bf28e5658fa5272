"""Aliases of MLflow's registry, and deployments of the versions they name.

Of the processes of a group that one does it which owns partition 0 of the observations: every group has exactly one,
whatever its configuration, and it changes hands as partitions do. Two at once, for a moment, do no harm: a version that
a model has already is passed over. What an alias names is compared with the last record of the models topic each time:
so a restart, a move of the partition or a late record of a process that was frozen needs no care.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_topics import InvalidRecordError, decode_deployment, encode_json

from ..config.mlflow import MlflowModel, Registered
from ..config.settings import Config
from ..errors import AttributaryError, ConfigError, DeploymentError, FilesAwayError, RegistryAwayError, without_text
from ..kafka.deployments import read_deployments, send_deployment
from ..models.from_mlflow.registry import SCRATCH, Registry
from .threads import in_thread

logger = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between two looks at whether this process asks the registry, and whether an alias is due."""

AGAIN_S = 5.0
"""Seconds until an alias is looked at again after a failure, unless its `poll` is shorter."""

Read = Callable[[Config], Awaitable[dict[str, list[Any]]]]
Send = Callable[[Config, str, bytes, int | None], Awaitable[list[tuple[int, int]]]]


class RegistryBoard:
    """State of the registry as this process knows it, for scrapes and the log.

    The log has each thing once.
    """

    def __init__(self) -> None:
        self.is_up: bool | None = None
        """Whether it answers; None where this process asks nothing."""
        self.answered_at: float | None = None
        """Time of its last answer, in seconds since the epoch."""
        self.missing: dict[str, str] = {}
        """Model id to what the registry lacks: the alias, the version, the model."""
        self.retried: dict[str, str] = {}
        """Model id to why its version is tried again, for as long as that lasts."""
        self.n_sent: Counter[str] = Counter()
        """Model id to the versions that this process has deployed."""
        self.looks = False
        """Whether this process looks at aliases."""

    def note_answer(self) -> None:
        """Note that the registry has answered."""
        if self.is_up is False:
            logger.info("MLflow's registry answers again")
        self.is_up, self.answered_at = True, time.time()

    def note_away(self, why: str) -> None:
        """Note that it could not be asked."""
        if self.is_up is not False:
            logger.warning("MLflow's registry cannot be asked, and is asked again until it can: %s", why)
        self.is_up = False

    def note_missing(self, model_id: str, what: str) -> None:
        """Note that the registry lacks something of a model.

        The model keeps the version that it has.
        """
        if self.missing.get(model_id) != what:
            logger.warning("models.%s: %s; its version stays", model_id, what)
        self.missing[model_id] = what

    def note_retried(self, model_id: str, why: str) -> None:
        """Note that a version cannot be fetched or built now, and is tried again.

        The model keeps the version that it has meanwhile.
        """
        if model_id not in self.retried:
            logger.warning("model %s: %s; it is tried again, and the model keeps what it has meanwhile", model_id, why)
        self.retried[model_id] = why

    def note_tried(self, model_id: str) -> None:
        """Note that nothing of a model is tried again."""
        if self.retried.pop(model_id, None) is not None:
            logger.info("model %s: no version is tried again any more", model_id)

    def forget(self, model_ids: Collection[str] = ()) -> None:
        """Note that nothing of these models is looked at or fetched any more.

        Whether the registry is up would never be corrected where this process asks nothing.
        """
        for model_id in model_ids:
            self.missing.pop(model_id, None)
            self.retried.pop(model_id, None)
        if not self.looks:
            self.is_up = self.answered_at = None


def followed(config: Config) -> dict[str, tuple[MlflowModel, Registered]]:
    """Return the configured models of MLflow's registry, by id."""
    return {
        model_id: (model.model, model.registered)
        for model_id, model in config.models.items()
        if isinstance(model.model, MlflowModel) and model.registered is not None
    }


class AliasPoller:
    """Poller of aliases that deploys their versions, while `is_ours`.

    Parameters
    ----------
    is_ours
        Whether it is for this process to look.
    registry, read, send
        The registry, and the models topic; for tests.
    """

    def __init__(
        self,
        config: Config,
        board: RegistryBoard,
        is_ours: Callable[[], bool],
        registry: Registry | None = None,
        read: Read = read_deployments,
        send: Send = send_deployment,
    ) -> None:
        self._config, self.board, self._is_ours = config, board, is_ours
        self._registry = registry or Registry(config.mlflow)
        self._read, self._send = read, send
        self._followed = followed(config)
        self._due: dict[str, float] = {}
        self._records: dict[str, list[Any]] | None = None
        """What the models topic has, once it was read for a look."""
        self._failure = ""

    async def run(self) -> None:
        """Poll until cancelled, logging failures and trying again."""
        while True:
            before, self.board.looks = self.board.looks, self._is_ours()
            if self.board.looks:
                if not before:
                    logger.info("this process looks at MLflow's registry, for %d models", len(self._followed))
                    self._due.clear()
                await self.look()
            elif before:
                self.board.forget(self._followed)
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Look at the aliases that are due."""
        now, self._records = time.monotonic(), None
        due = [model_id for model_id in self._followed if self._due.get(model_id, 0.0) <= now]
        try:
            for model_id in due:
                await self._look(model_id, self._followed[model_id][1])
        except (RegistryAwayError, ConfigError) as error:
            self.board.note_away(str(error))
        except AttributaryError as error:
            self._note_failure(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the worker
            self._note_failure(without_text(error))
        else:
            for model_id in due:
                self._due[model_id] = time.monotonic() + self._followed[model_id][0].poll
            self._failure = "" if due else self._failure
            return
        for model_id in due:
            self._due[model_id] = time.monotonic() + min(AGAIN_S, self._followed[model_id][0].poll)

    def _note_failure(self, message: str) -> None:
        if message != self._failure:
            logger.warning("looking at MLflow's registry has failed, and is tried again: %s", message)
        self._failure = message

    async def _look(self, model_id: str, registered: Registered) -> None:
        """Deploy an alias's version, unless the topic's last record does so."""
        board = self.board
        try:
            version = await in_thread(self._registry.version_of, registered)
            board.note_answer()
            exact = Registered(registered.name, version=version)
            if self._records is None:
                self._records = await self._read(self._config)
            last = self._records.get(model_id, [])
            if not self._is_deployed(last, model_id, str(exact)):
                await self._deploy(model_id, registered, exact, last)
            board.missing.pop(model_id, None)
            board.note_tried(model_id)
        except DeploymentError as error:
            board.note_answer()
            board.note_missing(model_id, str(error))
            board.note_tried(model_id)
        except FilesAwayError as error:  # holds up no other model; the next look tries it again
            board.missing.pop(model_id, None)
            board.note_retried(model_id, str(error))

    def _is_deployed(self, last: Sequence[Any], model_id: str, uri: str) -> bool:
        """Return whether the topic's last record is of this version.

        For a sharded model, the last record of each partition.
        """
        if model_id not in self._config.sharded:
            return bool(last) and _names(last[0], uri)
        there = {record.partition for record in last if _names(record, uri)}
        return there >= set(range(self._config.kafka.partitions))

    async def _deploy(self, model_id: str, registered: Registered, exact: Registered, last: Sequence[Any]) -> None:
        with TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as folder:
            digest = await in_thread(self._registry.fetch, exact, Path(folder))
        if not self._is_ours():
            return
        value = encode_json({"version": exact.version, "mlflow": str(exact), "sha256": digest})
        # Where a producer of its own chooses the partition, a version was sent there by hand before.
        partition = last[0].partition if last and model_id not in self._config.sharded else None
        places = await self._send(self._config, model_id, value, partition)
        self.board.n_sent[model_id] += 1
        topic = self._config.kafka.topics.models
        where = ", ".join(f"{topic}[{place}]@{offset}" for place, offset in places)
        logger.info("model %s: %s is version %s: deployed, %s", model_id, registered, exact.version, where)


def _names(record: Any, uri: str) -> bool:
    try:
        return decode_deployment(record.key, record.value).spec.get("mlflow") == uri
    except InvalidRecordError:
        return False

"""Poller of MLflow's aliases that writes new versions to a topic.

The models topic says which versions the aliases name.

Of the processes of a group that one does it which owns partition 0 of the observations: every group has exactly one,
whatever its configuration, and it changes hands as partitions do. Two at once, for a moment, do no harm: a version that
a model has already is passed over. What is wanted is compared with what the topic has, each time, and nothing is
remembered: so a restart, a move of the partition or a late record of a process that was frozen needs no care.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_topics import InvalidRecordError, decode_deployment, encode_json

from ...config.mlflow import MlflowModel, Registered
from ...config.settings import Config
from ...errors import (
    AttributaryError,
    ConfigError,
    DeploymentError,
    FilesAwayError,
    RegistryAwayError,
    without_text,
)
from ...kafka.deployments import read_deployments, send_deployment
from ...models.from_mlflow.loading import SCRATCH
from ...models.from_mlflow.process import RegistryProcess
from .board import LOOK, RegistryBoard
from .fetching import FIRST_PAUSE_S, LONGEST_PAUSE_S

logger = logging.getLogger(__name__)

LOOK_S = 0.5
"""Seconds between two looks at whether it is for this process to ask, and whether anything is due."""

Read = Callable[[Config], Awaitable[dict[str, list[Any]]]]
Send = Callable[[Config, str, bytes, int | None], Awaitable[list[tuple[int, int]]]]


def followed(config: Config) -> dict[str, tuple[MlflowModel, Registered]]:
    """Return the configured models that follow MLflow's registry, by id."""
    return {
        model_id: (model.model, model.registered)
        for model_id, model in config.models.items()
        if isinstance(model.model, MlflowModel) and model.registered is not None
    }


class AliasPoller:
    """Poller that asks the registry while `is_ours` and deploys changes.

    Parameters
    ----------
    is_ours
        Whether it is for this process to ask.
    process, read, send
        The registry, and the models topic; for tests.
    """

    def __init__(
        self,
        config: Config,
        board: RegistryBoard,
        is_ours: Callable[[], bool],
        process: RegistryProcess | None = None,
        read: Read = read_deployments,
        send: Send = send_deployment,
    ) -> None:
        self._config, self.board, self._is_ours = config, board, is_ours
        self._process = process or RegistryProcess(config.mlflow)
        self._read, self._send = read, send
        self._followed = followed(config)
        self._due = dict.fromkeys(self._followed, 0.0)
        self._pause_s, self._told = FIRST_PAUSE_S, ""
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Poll until `stop`, logging failures and trying again."""
        had = False
        try:
            while not self._stop.is_set():
                has = self._is_ours()
                if had and not has:
                    await self._process.close()
                    self.board.forget()
                if has and not had:
                    self._due = dict.fromkeys(self._followed, 0.0)
                    self.board.begin_looking()
                    logger.info("this process looks at MLflow's registry, for %d models", len(self._followed))
                had = has
                if has:
                    await self._look()
                await self._wait(LOOK_S)
        finally:
            await self._process.close()

    def stop(self) -> None:
        """Have `run` end."""
        self._stop.set()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            pass

    async def _look(self) -> None:
        now = time.monotonic()
        due = [model_id for model_id, at in self._due.items() if at <= now]
        if not due:
            return
        try:
            await self.poll(due)
            self._pause_s, self._told = FIRST_PAUSE_S, ""
            for model_id in due:
                self._due[model_id] = time.monotonic() + self._followed[model_id][0].poll
            return
        except (RegistryAwayError, ConfigError) as error:
            self.board.note_away(str(error))
        except AttributaryError as error:
            self._tell(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the worker
            self._tell(without_text(error))
        for model_id in due:
            self._due[model_id] = time.monotonic() + min(self._pause_s, self._followed[model_id][0].poll)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _tell(self, said: str) -> None:
        if said != self._told:
            logger.warning("looking at MLflow's registry has failed, and is tried again: %s", said)
        self._told = said

    async def poll(self, model_ids: list[str]) -> None:
        """Ask the registry, and deploy versions that the topic does not have.

        Raises
        ------
        RegistryAwayError
            The registry cannot be asked now.
        PreflightError
            The brokers cannot be reached, or refuse.
        """
        wanted = [self._followed[model_id][1] for model_id in model_ids]
        answers = await self._process.resolve(wanted)
        self.board.note_answer()
        uris = {}
        for model_id, named, answer in zip(model_ids, wanted, answers, strict=True):
            if "missing" in answer:
                self._note_missing(model_id, answer["missing"])
            else:
                uris[model_id] = f"models:/{named.name}/{answer['version']}"
        if not uris:
            return
        said = await self._read(self._config)
        for model_id, uri in uris.items():
            if self._says(said, model_id, uri):
                self._note_had(model_id)
            else:
                await self._deploy(model_id, uri, said)

    def _note_missing(self, model_id: str, what: str) -> None:
        self.board.note_missing(model_id, what)
        self.board.note_tried(LOOK, model_id)

    def _note_had(self, model_id: str) -> None:
        self.board.note_there(model_id)
        self.board.note_tried(LOOK, model_id)

    def _says(self, said: Mapping[str, list[Any]], model_id: str, uri: str) -> bool:
        """Return whether the topic's last record is of this version.

        For a sharded model, the last record of each partition.
        """
        last = said.get(model_id, [])
        if model_id not in self._config.sharded:
            return bool(last) and _names(last[0], uri)
        have = {one.partition for one in last if _names(one, uri)}
        return have >= set(range(self._config.kafka.partitions))

    async def _deploy(self, model_id: str, uri: str, said: Mapping[str, list[Any]]) -> None:
        with TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as scratch:
            folder = Path(scratch) / "model"
            folder.mkdir()
            try:
                digest = await self._process.fetch(uri, str(folder))
            except DeploymentError as error:
                self._note_missing(model_id, str(error))
                return
            except FilesAwayError as error:  # holds up no other model; the next look tries it again
                self.board.note_there(model_id)
                self.board.note_retried(LOOK, model_id, str(error))
                return
        self._note_had(model_id)
        if not self._is_ours():
            return
        version = uri.rpartition("/")[2]
        value = encode_json({"version": version, "mlflow": uri, "sha256": digest})
        # Where a producer of its own chooses the partition, a version was sent there by hand before.
        last = said.get(model_id, [])
        partition = last[0].partition if last and model_id not in self._config.sharded else None
        places = await self._send(self._config, model_id, value, partition)
        self.board.n_sent[model_id] += 1
        topic = self._config.kafka.topics.models
        where = ", ".join(f"{topic}[{place}]@{offset}" for place, offset in places)
        named = self._followed[model_id][1]
        logger.info("model %s: %s is version %s: deployed, %s", model_id, named, version, where)


def _names(record: Any, uri: str) -> bool:
    try:
        spec: dict[str, Any] = decode_deployment(record.key, record.value).spec
    except InvalidRecordError:
        return False
    return spec.get("mlflow") == uri

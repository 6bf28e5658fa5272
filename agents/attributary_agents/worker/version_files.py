"""Files of an MLflow version, fetched for the build of a partition.

It takes however long the registry needs.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from attributary_topics import Deployment

from ..config.settings import Config
from ..errors import ConfigError, DeploymentError, FilesAwayError, RegistryAwayError
from ..models.from_mlflow.loading import allowed_names, check_allowed, registered_of
from ..models.from_mlflow.registry import SCRATCH, Registry
from .aliases import RegistryBoard
from .threads import in_thread

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds between two tries, at first and at most; some are added at random."""

MOST_OTHERS = 3
"""How often files are fetched anew that are not those of the record."""


@dataclass(frozen=True)
class Files:
    """Fetched files: a folder, or the reason why there is none.

    Neither where a deployment needs no files.
    """

    folder: Path | None = None
    error: DeploymentError | None = None


@asynccontextmanager
async def fetched(config: Config, deployment: Deployment, board: RegistryBoard) -> AsyncIterator[Files]:
    """Yield a version's files, however long the registry is away.

    A caller that cannot wait has to cancel it.

    Files that cannot be had while the registry answers, or that are not those of the record, are tried again: a store
    may be away for itself, and a file may come in part.
    """
    try:
        check_allowed(deployment.spec, allowed_names(config.mlflow, config.settings_of(deployment.model_id)))
    except DeploymentError as error:
        yield Files(error=error)
        return
    with TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as scratch:
        try:
            files = await _fetch(config, deployment, board, Path(scratch))
        finally:
            board.note_tried(deployment.model_id)
            board.forget()
        yield files


async def _fetch(config: Config, deployment: Deployment, board: RegistryBoard, scratch: Path) -> Files:
    pause_s, until, n_others = FIRST_PAUSE_S, None, 0
    for number in itertools.count():
        folder = scratch / str(number)  # what an earlier try has left there would change the digest
        try:
            digest = await fetch(config, deployment.spec, folder)
            board.note_answer()
            if digest == deployment.spec["sha256"] or n_others == MOST_OTHERS:
                return Files(folder)  # what has another digest is refused by the process that builds it
            n_others += 1
            uri, meant = deployment.spec["mlflow"], deployment.spec["sha256"]
            why = f"{uri}: the files that came have the sha256 {digest}, the record says {meant}"
            board.note_retried(deployment.model_id, why)
        except DeploymentError as error:
            return Files(error=error)
        except FilesAwayError as error:
            board.note_answer()
            now = time.monotonic()
            until = until or now + config.mlflow.retry_within
            if now >= until:
                tried = f"tried for {config.mlflow.retry_within:g} s (mlflow.retry_within)"
                return Files(error=DeploymentError(f"{error}; {tried}", "wrong_artefact"))
            board.note_retried(deployment.model_id, str(error))
        except (RegistryAwayError, ConfigError) as error:  # a secret's file may be about to be exchanged
            board.note_away(str(error))
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    raise AssertionError


async def fetch(config: Config, spec: dict[str, str], folder: Path) -> str:
    """Put the files of a version into a new folder; return their digest.

    Raises
    ------
    DeploymentError, RegistryAwayError, FilesAwayError, ConfigError
        As for `Registry.fetch`; the files are away also where they take longer than `mlflow.fetch_within`.
    """
    registered, within_s = registered_of(spec), config.mlflow.fetch_within
    folder.mkdir()
    try:
        async with asyncio.timeout(within_s):
            return await in_thread(Registry(config.mlflow).fetch, registered, folder)
    except TimeoutError:
        late = f"its files have not come within {within_s:g} s: raise mlflow.fetch_within if they are large"
        raise FilesAwayError(f"{registered}: {late}") from None

"""Fetching of an MLflow version's files for a partition's build.

It takes however long the registry needs.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_topics import Deployment

from ...config.settings import Config
from ...errors import ConfigError, DeploymentError, FilesAwayError, RegistryAwayError
from ...models.from_mlflow.loading import SCRATCH, allowed_names, check_allowed, registered_of
from ...models.from_mlflow.process import RegistryProcess
from .board import TAKE, RegistryBoard

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


def needs_files(spec: dict[str, Any]) -> bool:
    """Return whether a deployment names a version of a registry."""
    return registered_of(spec) is not None


@asynccontextmanager
async def fetched(config: Config, deployment: Deployment, board: RegistryBoard) -> AsyncIterator[Files]:
    """Yield a version's files, however long the registry is away.

    A caller that cannot wait has to cancel it.

    Files that cannot be had while the registry answers, or that are not those of the record, are tried again for
    `mlflow.retry_within`: a store may be away for itself, and a file may come in part.
    """
    try:
        check_allowed(deployment.spec, allowed_names(config.mlflow, config.settings_of(deployment.model_id)))
    except DeploymentError as error:
        yield Files(error=error)
        return
    with TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as scratch:
        board.begin_fetching()
        try:
            files = await _fetch(config, deployment, board, Path(scratch))
        finally:
            board.note_tried(TAKE, deployment.model_id)
            board.end_fetching()
        yield files


async def _fetch(config: Config, deployment: Deployment, board: RegistryBoard, scratch: Path) -> Files:
    uri, pause_s, until, n_others = deployment.spec["mlflow"], FIRST_PAUSE_S, None, 0
    for number in itertools.count():
        folder = scratch / str(number)  # what an earlier try has left there would change the digest
        folder.mkdir()
        try:
            async with RegistryProcess(config.mlflow) as process:
                found = await process.fetch(uri, str(folder))
            board.note_answer()
            if found == deployment.spec["sha256"] or n_others == MOST_OTHERS:
                return Files(folder)  # what has another digest is refused by who builds it
            n_others += 1
            why = f"{uri}: the files that came have the sha256 {found}, the record says {deployment.spec['sha256']}"
            board.note_retried(TAKE, deployment.model_id, why)
        except (RegistryAwayError, ConfigError) as error:  # a secret's file may be about to be exchanged
            board.note_away(str(error))
        except DeploymentError as error:
            board.note_answer()
            return Files(error=error)
        except FilesAwayError as error:
            board.note_answer()
            now = time.monotonic()
            until = until or now + config.mlflow.retry_within
            if now >= until:
                tried = f"tried for {config.mlflow.retry_within:g} s (mlflow.retry_within)"
                return Files(error=DeploymentError(f"{error}; {tried}", "wrong_artefact"))
            board.note_retried(TAKE, deployment.model_id, str(error))
        shutil.rmtree(folder, ignore_errors=True)
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
    raise AssertionError

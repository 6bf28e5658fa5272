"""Fetches the files of a version of MLflow's registry that a partition is to build, however long that takes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_topics import Deployment

from ...config.settings import Config
from ...errors import DeploymentError, RegistryAwayError
from ...models.from_mlflow.loading import SCRATCH, allowed_names, check_allowed, registered_of
from ...models.from_mlflow.process import RegistryProcess
from .board import RegistryBoard

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""Seconds between two questions while the registry is away, at first and at most; some are added at random."""


@dataclass(frozen=True)
class Files:
    """What has been fetched: a folder, or why there is none; neither where a deployment needs no files."""

    folder: Path | None = None
    error: DeploymentError | None = None


def needs_files(spec: dict[str, Any]) -> bool:
    """Return whether a deployment names a version of a registry."""
    return registered_of(spec) is not None


@asynccontextmanager
async def fetched(config: Config, deployment: Deployment, board: RegistryBoard) -> AsyncIterator[Files]:
    """Give the files of a version. While the registry is away this waits; to be cancelled by who cannot."""
    try:
        check_allowed(deployment.spec, allowed_names(config.mlflow, config.settings_of(deployment.model_id)))
    except DeploymentError as error:
        yield Files(error=error)
        return
    pause_s = FIRST_PAUSE_S
    with TemporaryDirectory(prefix=SCRATCH, ignore_cleanup_errors=True) as scratch:
        while True:
            folder = Path(scratch) / "model"
            folder.mkdir(exist_ok=True)
            try:
                async with RegistryProcess(config.mlflow) as process:
                    await process.fetch(deployment.spec["mlflow"], str(folder))
                board.note_answer()
                files = Files(folder)
                break
            except RegistryAwayError as error:
                board.note_away(str(error))
            except DeploymentError as error:
                board.note_answer()
                files = Files(error=error)
                break
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        yield files

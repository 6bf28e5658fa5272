"""Startup check that the registry has the configured models."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ...config.mlflow import MlflowConfig, Registered
from ...config.settings import Config
from ...errors import ConfigError, RegistryAwayError
from .process import RegistryProcess

logger = logging.getLogger(__name__)


def check_registered(config: Config) -> None:
    """Ask the registry for the version of each configured model.

    Where the registry is away the start goes on: the topic may know the versions.

    Raises
    ------
    ConfigError
        It has no such model, alias or version, or there is nothing to ask it with.
    """
    wanted = {model_id: model.registered for model_id, model in config.models.items() if model.registered is not None}
    if not wanted:
        return
    try:
        answers = asyncio.run(_resolve(config.mlflow, list(wanted.values())))
    except RegistryAwayError as error:
        logger.warning(
            "MLflow's registry cannot be asked: %s. Models have the versions that they had, and others wait", error
        )
        return
    for model_id, answer in zip(wanted, answers, strict=True):
        if "missing" in answer:
            raise ConfigError(f"models.{model_id}: {answer['missing']}")


async def _resolve(config: MlflowConfig, wanted: Sequence[Registered]) -> list[dict[str, str]]:
    async with RegistryProcess(config) as process:
        return await process.resolve(wanted)

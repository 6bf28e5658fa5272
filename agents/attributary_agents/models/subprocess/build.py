"""Building of a deployed model in a separate process.

Nothing that the model does there can end the worker or hold it up.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson

from attributary_topics import Deployment

from ...config.settings import Config, ControlConfig
from ...errors import DeploymentError, NotBegunError
from ..deployments import Job, prepare
from .memory import memory_there_is
from .process import ApartError, run_apart

logger = logging.getLogger(__name__)


_HEAD_BYTES = 100_000
_MAX_SAID = 10
_KEYS = {"time": "build_within_s", "memory": "build_memory", "size": "max_model_bytes"}


async def build(config: Config, deployment: Deployment, folder: Path | None = None) -> bytes:
    """Build a deployment's model in a separate process; return its bytes.

    The model is built by `prepare`, within the limits of `control`.

    Parameters
    ----------
    folder
        Where the files are, if it is a version of MLflow's registry.

    Raises
    ------
    NotBegunError
        The process could not be started, or did not come to its work: that may pass.
    DeploymentError
        As `prepare`, or the model goes beyond a limit, which the message names.
    """
    control = config.control
    memory = _memory(control)
    try:
        answer = await run_apart(
            f"{__name__}:build_here",
            pickle.dumps(Job.of(config, deployment, folder)),
            within_s=config.build_within_s,
            memory=memory,
            max_bytes=control.max_model_bytes + _HEAD_BYTES,
        )
    except ApartError as error:
        kind = NotBegunError if error.kind == "start" else DeploymentError
        raise kind(f"the model could not be built: {error}. {_remedy(error.kind, memory)}") from None
    head, _, blob = answer.partition(b"\n")
    said = orjson.loads(head)
    for message in said["log"]:
        logger.warning("building version %s of model %s: %s", deployment.version, deployment.model_id, message)
    if said["reason"]:
        raise DeploymentError(said["message"], said["reason"])
    if len(blob) > control.max_model_bytes:
        raise DeploymentError(
            f"the model takes {len(blob)} bytes, control.max_model_bytes is {control.max_model_bytes}: deploy a "
            "smaller one, or raise it in the workers' configuration"
        )
    return blob


def build_here(payload: bytes) -> Callable[[], bytes]:
    """Return the function that builds a job's model in this process.

    Its result is a line of JSON, with warnings and any error, followed by the model's bytes.
    """
    return partial(_build_here, pickle.loads(payload))


def _build_here(job: Job) -> bytes:
    log: list[str] = []
    handler = _Collected(log)
    logging.getLogger(__name__.split(".")[0]).addHandler(handler)
    blob, reason, message = b"", "", ""
    try:
        blob = prepare(job)
    except DeploymentError as error:
        reason, message = error.reason, str(error)[:1000]
    return orjson.dumps({"log": log, "reason": reason, "message": message}) + b"\n" + blob


class _Collected(logging.Handler):
    """Keeps the first warnings, for the worker's log."""

    def __init__(self, log: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._log) < _MAX_SAID:
            self._log.append(record.getMessage()[:500])


def _memory(control: ControlConfig) -> int | None:
    if control.build_memory is not None:
        return control.build_memory
    there_is = memory_there_is()
    return None if there_is is None else there_is // 2


def _remedy(kind: str, memory: int | None) -> str:
    if kind in _KEYS:
        has = f" (it may have {memory} bytes)" if kind == "memory" else ""
        return f"Deploy a smaller one, or raise control.{_KEYS[kind]} in the workers' configuration{has}"
    if kind == "start":
        return "Has this machine the memory and processes for one more?"
    if kind == "ended":
        return (
            f"It may have {memory} bytes of memory (control.build_memory); otherwise its code ends the process: try "
            "`attributary models deploy --dry-run` where its code is"
        )
    return "Try `attributary models deploy --dry-run` where its code is"

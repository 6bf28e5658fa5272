"""Trial, in a separate process, of work that has ended a worker.

The work is to handle an observation or to restore a model.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Callable
from dataclasses import dataclass

from ...config.mlflow import MlflowConfig, MlflowModel
from ...config.security import SecurityConfig
from ...config.serving import ServeConfig
from ...config.settings import Config
from ...config.state import StateConfig
from ...errors import DamagedStateError
from ...models.apart import run_apart
from ...models.apart.memory import memory_in_use, memory_there_is
from ...models.artefacts.served.answers import Answers, answering
from ...state.codec import decode_state, encode_state
from ...state.deployment_log import encode_log
from ...state.names import control_key
from ..partition import Partition
from ..records import Record
from .endings import Begun

_SHARE = 0.9
"""Part of the memory that is free, and of the time after which a worker ends itself."""

_LEAST_MEMORY = 500_000_000


@dataclass(frozen=True)
class _Handling:
    config: Config
    record: Record
    stored: dict[bytes, bytes]
    answers: Answers | None


@dataclass(frozen=True)
class _Restoring:
    config: Config
    model_id: str
    blob: bytes


async def try_observation(partition: Partition, record: Record, begun: Begun, answers: Answers | None = None) -> None:
    """Handle an observation apart, from the state that its model has now.

    Parameters
    ----------
    begun
        Awaited when everything is ready, before the observation is handled.
    answers
        What served models have answered for it.

    Raises
    ------
    ApartError
        The process ended, took longer than a worker may, or more memory than there is.
    """
    config = partition.config
    key = record.key or b""
    model_id = config.finder.id_of_key(key)
    stored: dict[bytes, bytes] = {}
    if model_id is not None:
        if (state := partition.models.get(model_id)) is not None:
            stored[key] = encode_state(state)
        with contextlib.suppress(DamagedStateError):  # a dead letter, as it will be when it is handled
            stored[control_key(model_id, partition.number)] = encode_log(partition.models.log(model_id))
    await _run(f"{__name__}:handle_here", _Handling(_public(config), record, stored, answers), config, begun)


async def try_restore(config: Config, model_id: str, blob: bytes, begun: Begun) -> None:
    """Restore a stored state apart.

    Parameters
    ----------
    begun
        Awaited when everything is ready, before the state is restored.

    Raises
    ------
    ApartError
        As for `try_observation`.
    """
    await _run(f"{__name__}:restore_here", _Restoring(_public(config), model_id, blob), config, begun)


async def _run(function: str, work: object, config: Config, begun: Begun) -> None:
    there_is = memory_there_is()
    memory = None if there_is is None else max(int(_SHARE * (there_is - memory_in_use())), _LEAST_MEMORY)
    within_s = _SHARE * config.watchdog.end_after_s
    await run_apart(function, pickle.dumps(work), within_s=within_s, memory=memory, begun=begun)


def _public(config: Config) -> Config:
    """Return the configuration without its secrets."""
    kafka = config.kafka.model_copy(update={"security": SecurityConfig(), "schema_registry": None})
    models = {
        name: model.model_copy(update={"model": model.model.without_secrets})
        if isinstance(model.model, MlflowModel)
        else model
        for name, model in config.models.items()
    }
    empty = {"mlflow": MlflowConfig(), "serve": ServeConfig(), "state": StateConfig()}
    return config.model_copy(update={"kafka": kafka, "models": models, **empty})


def handle_here(payload: bytes) -> Callable[[], bytes]:
    """Restore the model here; return a function handling the observation.

    The results of handling it are discarded.
    """
    logging.disable(logging.CRITICAL)
    work: _Handling = pickle.loads(payload)
    partition = Partition(work.record.topic, work.record.partition, work.config, work.stored.get)
    for name in work.stored:
        if (model_id := work.config.finder.id_of_key(name)) is not None:
            partition.models.find(model_id)

    partition.counters.origins.note_gap()  # whether it is to be handled has been decided

    def handle() -> bytes:
        with answering(work.answers or Answers()):  # nobody is asked here
            sent = partition.handle(work.record)
        for outgoing in sent:
            # A partition takes it for a failure of the model like any other; without this limit it is none.
            if dict(outgoing.headers).get("attributary-dlq-error") == b"MemoryError":
                raise MemoryError
        return b""

    return handle


def restore_here(payload: bytes) -> Callable[[], bytes]:
    """Return a function that restores the state in this process.

    A state that cannot be used is left for the worker to find and to report.
    """
    logging.disable(logging.CRITICAL)
    work: _Restoring = pickle.loads(payload)

    def restore() -> bytes:
        decode_state(work.model_id, work.config.settings_of(work.model_id), work.blob)
        return b""

    return restore

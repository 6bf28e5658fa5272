"""Protection against input that ends worker after worker.

Such input is a record, a deployment or a stored state. A note, stored beside the states with the same signature, says
what the owner of a partition is about to do that could end it, and what has ended owners before.

An owner writes one note when it begins and one when it releases the partition; nothing for a record. Where the next
owner finds the note open, the one before it has ended, and the next one is careful: before each model that it restores,
and each observation that the one before it may have come to, it notes which one it is. If it ends too, that one is
suspect. The third owner lets a process of its own restore the model or handle the observation. What ends that process
as well is refused, and noted; what does not was not the reason, and is handled like any other.

Whoever kills a worker kills it at some moment, and making that process takes seconds, its work a moment. So what the
owner does is noted in two parts: an owner that ends while it makes the process has said nothing about the suspect.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import orjson

from ..config.mlflow import MlflowConfig, MlflowModel
from ..config.security import SecurityConfig
from ..config.serving import ServeConfig
from ..config.settings import Config
from ..config.state import StateConfig
from ..errors import DamagedStateError
from ..models.artefacts.served.answers import Answers, answering
from ..models.subprocess.memory import memory_in_use, memory_there_is
from ..models.subprocess.process import ApartError, run_apart
from ..state.codec import decode_state, encode_state
from ..state.deployment_log import encode_log
from ..state.names import control_key, note_key
from .partition import Partition
from .records import Record

logger = logging.getLogger(__name__)


FORMAT = 1


@dataclass
class Note:
    """Knowledge of earlier owners that a partition's next owner needs.

    Offsets are those of the observations, unless said otherwise.

    Attributes
    ----------
    is_open
        Whether an owner has begun and not released the partition: where the next one finds it so, it has ended.
    reach
        How far beyond its checkpoint that owner may have come, in offsets.
    observation
        The one that a careful owner is about to handle; -1 for none.
    restore
        The model that a careful owner is about to restore; "" for none.
    deployment
        Offset in the models topic of the deployment that is being built, and how many owners have begun it.
    suspects
        Offset, as text, to the number of owners that ended when they had noted this observation last.
    suspect_models
        Model id to the number of owners that ended when they had noted last that they restore it.
    ended
        Observations that are not to be handled: they end whatever handles them.
    trying
        The suspect for which a process of its own is being made; "" for none.
    trials
        Suspect to the number of owners that ended when they had noted last that they make a process for it.
    """

    is_open: bool = False
    reach: int = 0
    observation: int = -1
    restore: str = ""
    deployment: tuple[int, int] = (-1, 0)
    suspects: dict[str, int] = field(default_factory=dict)
    suspect_models: dict[str, int] = field(default_factory=dict)
    ended: list[int] = field(default_factory=list)
    trying: str = ""
    trials: dict[str, int] = field(default_factory=dict)


def encode_note(note: Note) -> bytes:
    """Return the bytes to store."""
    return orjson.dumps({"format": FORMAT, **asdict(note)})


def decode_note(blob: bytes | None) -> Note:
    """Decode the stored note; return an empty note without a usable blob.

    Such a blob is missing, damaged or of another format.
    """
    if blob is None:
        return Note()
    try:
        data: dict[str, Any] = orjson.loads(blob)
        if data.pop("format") != FORMAT:
            return Note()
        return Note(**{**data, "deployment": tuple(data["deployment"])})
    except (ValueError, KeyError, TypeError):
        return Note()


MAX_ENDED = 3
"""Workers that may end at a suspect: where its trials end them too, it is refused without a further one."""

MAX_MADE = 3
"""Workers that may end while they make the process for a suspect: then it is handled without a trial."""

MAX_BUILDING = 2
"""Workers that may end while they build a deployment."""

Begun = Callable[[], Awaitable[None]]
"""Is awaited when the process of its own has been made, before it does what is suspect."""

Trial = Callable[[Begun], Awaitable[None]]
"""Does what is suspect in a process of its own; raises ApartError where that process does not finish."""


class Store(Protocol):
    """The part of `PartitionStore` that is needed here."""

    def load(self, name: bytes) -> bytes | None:
        """Return the bytes last written."""
        ...

    async def put(self, name: bytes, blob: bytes) -> None:
        """Write the bytes durably."""
        ...


class Endings:
    """Keeper of a partition's note while the partition is ours.

    Parameters
    ----------
    checkpointed
        Last offset in the partition's checkpoint.
    reach
        Offsets after which a checkpoint is wanted: `checkpoint.max_observations`.
    """

    def __init__(self, store: Store, partition: int, checkpointed: int, reach: int) -> None:
        self._store = store
        self._key = note_key(partition)
        self._step = reach
        note = self._load()
        self.is_careful = note.is_open
        """Whether the owner before us has ended: what it may have done since its checkpoint is under suspicion."""
        self._careful_to = checkpointed + note.reach if note.is_open else -1
        suspects = {offset: n for offset, n in note.suspects.items() if int(offset) > checkpointed}
        models = dict(note.suspect_models)
        if note.is_open and note.observation > checkpointed:
            suspects[str(note.observation)] = suspects.get(str(note.observation), 0) + 1
        if note.is_open and note.restore:
            models[note.restore] = models.get(note.restore, 0) + 1
        trials = dict(note.trials)
        if note.is_open and note.trying:
            trials[note.trying] = trials.get(note.trying, 0) + 1
        known = {*map(_observation, suspects), *map(_restoring, models)}
        ended = [offset for offset in note.ended if offset > checkpointed]
        self._note = Note(
            is_open=True,
            reach=reach,
            deployment=note.deployment,
            suspects=suspects,
            suspect_models=models,
            ended=ended,
            trials={what: n for what, n in trials.items() if what in known},
        )
        self._is_open = False
        self._watched = self._find_watched(checkpointed)

    def _load(self) -> Note:
        try:
            return decode_note(self._store.load(self._key))
        except DamagedStateError as error:
            logger.warning("%s: what ended earlier workers is not known", error)
            return Note(is_open=True, reach=self._step)

    def _find_watched(self, checkpointed: int) -> int:
        """Return the last offset that needs more than a comparison."""
        # One beyond those of which a note is made: there it is taken back.
        return max([checkpointed, self._careful_to + 1, *map(int, self._note.suspects), *self._note.ended])

    async def _write(self) -> None:
        await self._store.put(self._key, encode_note(self._note))

    async def open(self) -> None:
        """Note that the partition has an owner, before it does anything.

        Only the first call has an effect.
        """
        if self._is_open:
            return
        self._is_open = True
        await self._write()
        if self.is_careful:
            logger.warning(
                "partition %s: its last owner has ended without releasing it; each observation up to offset %d is "
                "noted before it is handled, which takes some milliseconds more each. There is nothing to do",
                self._key.decode().removeprefix("\0note/"),
                self._careful_to,
            )

    async def close(self) -> None:
        """Note that the partition was released with all its work stored."""
        if self._is_open:
            self._is_open = self._note.is_open = False
            self._note.observation, self._note.restore, self._note.trying = -1, "", ""
            await self._write()

    @property
    def repeats_to(self) -> int:
        """Last offset that an ended owner may have handled; -1 for none.

        It may lie beyond that owner's checkpoint. An owner has ended if it did not release the partition.
        """
        return self._careful_to

    def concerns(self, offset: int, checkpointed: int) -> bool:
        """Return whether `allows` must be called before this observation."""
        return offset <= self._watched or offset - checkpointed > self._note.reach

    async def allows(self, offset: int, checkpointed: int, trial: Trial) -> bool:
        """Return whether an observation may be handled; note it if needed.

        A note is durable on return.

        It may not be handled when it has ended a worker that had noted it, and a process of its own as well.
        """
        note, name = self._note, str(offset)
        if offset in note.ended:
            return False
        is_further = offset - checkpointed > note.reach
        if is_further:
            note.reach = offset - checkpointed + self._step
        if name in note.suspects:
            note.observation = -1
            return await self._allows_suspect(offset, trial)
        noted = offset if offset <= self._careful_to else -1
        if is_further or noted != note.observation:
            note.observation = noted
            await self._write()
        return True

    async def _allows_suspect(self, offset: int, trial: Trial) -> bool:
        note, name = self._note, str(offset)

        async def begun() -> None:
            note.observation, note.trying = offset, ""
            await self._write()

        if await self._survives(_observation(name), note.suspects[name], trial, begun):
            return True
        note.ended.append(offset)
        note.observation = -1
        del note.suspects[name]
        await self._write()  # before the dead letter: a successor sends the same one
        return False

    async def allows_restore(self, model_id: str, checkpointed: int, trial: Trial) -> bool:
        """Return whether a model may be restored; note it if needed.

        A note is durable on return. It is needed until a checkpoint has what the owner before may have come to.
        """
        note = self._note

        async def begun() -> None:
            note.restore, note.trying = model_id, ""
            await self._write()

        if model_id in note.suspect_models:
            note.restore = ""
            if not await self._survives(_restoring(model_id), note.suspect_models[model_id], trial, begun):
                # Tried again by the next owner: it may have been mended.
                note.suspect_models[model_id] = min(note.suspect_models[model_id], MAX_ENDED - 1)
                return False
            del note.suspect_models[model_id]
        elif self.is_careful and checkpointed < self._careful_to:
            await begun()
        return True

    async def _survives(self, what: str, n_ended: int, trial: Trial, begun: Begun) -> bool:
        """Return whether a separate process survives the suspect work.

        The work is noted as begun if it survives, or if it could not be tried.
        """
        note = self._note
        if n_ended >= MAX_ENDED:
            return False
        if note.trials.get(what, 0) >= MAX_MADE:
            logger.warning("%s: %d workers ended before they could try it apart: it is done here", what, MAX_MADE)
            await begun()
            return True
        note.trying = what
        await self._write()
        try:
            await trial(begun)
        except ApartError as error:
            if error.kind in ("time", "memory", "ended"):
                logger.error("%s has ended a worker, and a process of its own too: %s", what, error)
                note.trying = ""
                return False
            logger.warning("%s cannot be tried apart, %s: it is done here", what, error)
        if note.trying:  # it has not come to its work
            await begun()
        return True

    async def restored(self) -> None:
        """Note that all models are restored."""
        if self._note.restore:
            self._note.restore = ""
            await self._write()

    async def begin_deployment(self, offset: int) -> bool:
        """Note a deployment before it is built; return False after two crashes.

        The note is durable. The crashes are workers that have ended at this deployment.
        """
        noted, n = self._note.deployment
        n = n if noted == offset else 0
        if n >= MAX_BUILDING:
            return False
        self._note.deployment = (offset, n + 1)
        await self._write()
        return True

    async def leave_deployment(self) -> None:
        """Clear the note of a deployment that has not ended the worker.

        It was not built for another reason, such as the partition going.
        """
        self._note.deployment = (-1, 0)
        await self._write()


def _observation(offset: str) -> str:
    return f"the observation at offset {offset}"


def _restoring(model_id: str) -> str:
    return f"restoring model {model_id}"


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

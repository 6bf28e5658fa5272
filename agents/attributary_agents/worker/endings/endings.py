"""Notes and trials that keep an input from ending a third worker.

Notes what is under way, and tries the suspect in a process of its own.

An owner writes one note when it begins and one when it releases the partition; nothing for a record. Where the next
owner finds the note open, the one before it has ended, and the next one is careful: before each model that it restores,
and each observation that the one before it may have come to, it notes which one it is. If it ends too, that one is
suspect. The third owner lets a process of its own restore the model or handle the observation. What ends that process
as well is refused, and noted; what does not was not the reason, and is handled like any other.

Whoever kills a worker kills it at some moment, and making that process takes seconds, its work a moment. So what the
owner does is noted in two parts: an owner that ends while it makes the process has said nothing about the suspect.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from ...errors import DamagedStateError
from ...models.apart import ApartError
from ...state.names import note_key
from .note import Note, decode_note, encode_note

logger = logging.getLogger(__name__)

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

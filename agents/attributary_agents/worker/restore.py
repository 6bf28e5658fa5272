"""Restoring of the stored models of a partition.

A model that is asked for is ready first; those that have series follow in slices.

The others rest as they are stored until they are asked for: of thousands of models most have no series, and a restored
one takes five to eleven times the memory (`make scale ARGS=state`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from functools import partial

from faust.types import TP

from attributary_explainers.pickling import uncollected

from ..errors import DamagedStateError, StateError
from ..state.codec import check_release
from ..state.names import control_key
from ..state.store import PartitionStore
from .activity import Step
from .partition import Partition
from .poison import Begun, Endings, try_restore
from .schedule import RESTORE_S, Steps
from .shared import Shared

logger = logging.getLogger(__name__)


MOST_ASKED = 2**16
"""Ids that are noted as asked for; beyond that those that are not loaded are looked for once more."""


class Restoring:
    """Restorer of a partition's stored models.

    A model is restored once, when it is asked for or is to have series.

    Parameters
    ----------
    goes_on
        Whether the partition still is ours, and none of its steps has failed.
    """

    def __init__(
        self,
        shared: Shared,
        tp: TP,
        partition: Partition,
        store: PartitionStore,
        endings: Endings,
        goes_on: Callable[[], bool],
    ) -> None:
        self._shared = shared
        self._tp = tp
        self._partition = partition
        self._store = store
        self._endings = endings
        self._goes_on = goes_on
        self._asked: set[str] = set()
        self._unchecked: set[str] = set()
        """Ids of the models of which only restoring them tells whether this release can use their state."""
        self._has_begun = self._is_counted = False
        self._n_before = 0
        """How many were restored for their records before the others were counted."""

    async def begin(self) -> None:
        """Note the owner and the stored models, and check their releases.

        The owner is the partition's; the releases are those that wrote the states.

        Raises
        ------
        StateError
            A state cannot be used by this release, as far as its first bytes say that.
        """
        if self._has_begun:
            return
        await self._endings.open()
        # The names that are stored, and those that the checkpoint names and that are gone.
        stored, id_of = self._shared.records.names(self._tp.partition), self._shared.model_id_of
        names = {**dict.fromkeys(stored), **dict.fromkeys(map(str.encode, self._partition.models.stored))}
        waiting = [model_id for name in names if (model_id := id_of(name)) is not None]
        began = time.perf_counter()
        for model_id in waiting:
            await self._check(model_id)
            if time.perf_counter() - began > RESTORE_S:
                await asyncio.sleep(0)
                began = time.perf_counter()
        self._partition.models.wait_for(waiting)
        self._has_begun = True

    async def _check(self, model_id: str) -> None:
        name, config = model_id.encode(), self._shared.config.settings_of(model_id)
        try:
            beginning = self._store.beginning(name)
            if beginning is None:  # an object, or a state that is gone
                self._unchecked.add(model_id)
            try:
                check_release(model_id, config, beginning)
            except StateError:  # unless these bytes are others than were stored
                check_release(model_id, config, self._store.load(name))
        except DamagedStateError:
            self._unchecked.add(model_id)  # said when it is restored

    def is_ready(self, key: bytes | None) -> bool:
        """Return whether `restore_asked` has nothing to do for this key."""
        model_id = self._shared.model_id_of(key)
        return self._has_begun and (model_id is None or self._is_there(model_id))

    def _is_there(self, model_id: str) -> bool:
        """Return whether a model was asked for and is still in memory.

        It may have come to rest since.
        """
        return model_id in self._asked and self._partition.models.is_restored(model_id)

    async def restore_asked(self, key: bytes | None) -> None:
        """Restore a record's model and fetch its deployments.

        To be done before anything else is done with the record.
        """
        model_id = self._shared.model_id_of(key)
        if model_id is None or self._is_there(model_id):
            return
        if not self._partition.models.is_restored(model_id):
            await self._restore(model_id)
            await self._endings.restored()
        if model_id not in self._partition.models:
            await self._store.fetch(model_id.encode())  # is asked for once more
        await self._store.fetch(control_key(model_id, self._tp.partition))
        if len(self._asked) >= MOST_ASKED:  # by keys that templates match, and whose records cannot be used
            self._asked.intersection_update(self._partition.models)
        self._asked.add(model_id)

    def choose(self, shown: Collection[str]) -> None:
        """Let all models rest, except models with series or in doubt.

        In doubt are those that may be of another release.
        """
        models = self._partition.models
        with self._shared.view.lock:
            models.rest_but({*shown, *self._unchecked})
        self._shared.restored.add(len(models.waiting), len(models.resting), self._n_before)
        self._is_counted = True

    async def restore_chosen(self, steps: Steps) -> None:
        """Restore the models that do not rest, in slices between records.

        Then sign the states that have no signature.
        """
        slices, waiting = self._shared.slices, self._partition.models.waiting
        while waiting:
            await slices.rest()
            async with steps:
                began = time.perf_counter()
                while waiting:
                    if not self._goes_on():
                        self.leave()
                        return
                    await self._restore(next(iter(waiting)))
                    if time.perf_counter() - began >= RESTORE_S:
                        break
                await self._endings.restored()
            slices.note_slice(time.perf_counter() - began)
        async with steps:
            if self._goes_on():
                await self._sign()

    def leave(self) -> None:
        """Note that the partition goes, with the models that are not restored."""
        if self._is_counted:
            self._is_counted = False
            self._shared.restored.leave(len(self._partition.models.waiting))

    async def _restore(self, model_id: str) -> None:
        name, models = model_id.encode(), self._partition.models
        with self._shared.view.activity.doing(Step("restore", self._tp, self._partition.offset, name)):
            await self._store.fetch(name)
            is_allowed = await self._endings.allows_restore(
                model_id, self._partition.checkpointed, partial(self._try, model_id)
            )
            is_waiting = model_id in models.waiting
            with self._shared.view.lock, uncollected():
                if is_allowed:
                    models.restore(model_id)
                else:
                    models.refuse(model_id)
                if model_id in models and (template := models.known.template_of(model_id)) is not None:
                    self._shared.view.n_loads[template] += 1
        if not self._is_counted:  # its record came before the others were counted
            self._n_before += 1
        elif is_waiting:
            self._shared.restored.note()

    async def _try(self, model_id: str, begun: Begun) -> None:
        """Restore a model apart, where workers have ended."""
        try:
            blob = self._store.load(model_id.encode())
        except StateError:
            return
        if blob is not None:
            await try_restore(self._shared.config, model_id, blob, begun)
        await self._store.fetch(model_id.encode())  # once more: a fetched object is there for one reader

    async def _sign(self) -> None:
        """Sign stored states that have no signature.

        Done only while the group begins to sign.
        """
        if not self._shared.config.state.accept_unsigned:
            return
        with self._shared.view.activity.doing(Step("sign", self._tp, self._partition.offset)):
            signed = await self._store.sign(self._goes_on)
        if not self._goes_on():
            return
        logger.warning(
            "partition %d: %d stored states had no signature, and have one now: this partition needs no "
            "state.accept_unsigned any more",
            self._tp.partition,
            signed,
        )

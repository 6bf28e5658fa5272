"""Answers of served models, fetched before observations need them.

A model answers over the network, and an observation may not wait in the middle of its way: it would hold up the event
loop, or be half handled when the partition goes. So:

1. a shadow of the partition (`shadow`) looks at the observations that wait, with placeholders for answers that are not
   known, and shows which rows the models will be asked for. It is thrown away;
2. these rows are asked for, in few requests, beside everything else and while nothing of the partition changes;
3. another shadow, which is in the partition's own state, takes one observation after another with the answers. Those of
   which it finds all are ready: the partition handles them at once. What is asked depends on answers in a few places
   only: among the first observations, whose draws are spread over predictions, and where a change is explained. Then
   it begins again with 1, and with the answers that there are.

A partition whose endpoint is away waits between two observations, as if none had come: checkpoints, rebalances and a
stop take their course. What is killed meanwhile has done nothing yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import Any

from ...config.served import ServedConfig
from ...errors import DamagedStateError
from ...models.artefacts.served.answers import Answers, Group, Wanted, answering
from ...models.artefacts.served.model import SERVED_NAME
from ...models.artefacts.served.words import Values
from ..partition import Partition
from ..records import record_from_client
from .endpoints import Endpoints
from .shadow import Shadow, unheard

logger = logging.getLogger(__name__)

MOST_RECORDS = 64
"""Observations that are looked ahead at once."""

MOST_ROWS = 10_000
"""Rows after which no further observation is looked at, before those are asked for."""

MOST_KNOWN = 5 * MOST_ROWS
"""Rows whose answers are kept while further ones are asked for; more only where a single observation needs them."""

LOOK_S = 0.02
"""Longest that a shadow handles observations in one turn of the event loop; one at least."""


class Ahead:
    """Fetcher of the answers that a partition's observations will need."""

    def __init__(self, partition: Partition, endpoints: Endpoints, clock: Callable[[], float] = time.monotonic) -> None:
        self._partition = partition
        self._endpoints = endpoints
        self._clock = clock
        self._asking: asyncio.Future[None] | None = None
        self._is_leaving = False
        self._n_left = 0
        """Observations for which answers were asked, and which are not handled."""
        self._forgot_at = -1
        """Offset of the last observation that had been handled when answers were forgotten because they were many."""
        self._shadow: Shadow | None = None
        """In the state that the partition has once it has handled the observations up to the shadow's offset."""
        self._seen: object = None
        """How the models of the shadow were when the partition was last known to agree with it."""
        self.answers = Answers()
        self.is_wanting = False
        """Whether answers have to be asked for before anything else is handled."""
        self.n_unforeseen = 0
        """Calls that no shadow had foreseen: each is a fault, for which an observation has waited."""

    def n_ready(self, waiting: Sequence[Any], at_most: int) -> int:
        """Return how many of the first waiting records can be handled now.

        Notes also whether the others want answers.

        What is ready is so for the partition as it is: it is to be handled before anything else of it is done.

        Parameters
        ----------
        waiting
            Records of the client, at least one, that could be handled one after another if nobody had to be asked.
        """
        n_plain = sum(1 for _ in takewhile(lambda one: not self._concerns(one.key), waiting))
        if n_plain:
            return min(n_plain, at_most)
        if self._n_left <= 0:
            self.is_wanting = True
            return 0
        waiting = waiting[: self._n_left]
        shadow = self._agreeing(waiting)
        n_ready = sum(1 for _ in takewhile(lambda one: one.offset <= shadow.offset, waiting))
        began = self._clock()
        self.answers.begin()
        with unheard():
            for one in waiting[n_ready:at_most]:
                self._show(shadow, one)
                if self.answers.wanted:
                    self._shadow = None  # it went on with a placeholder
                    break
                n_ready += 1
                if self._clock() - began >= LOOK_S:
                    break
        self.is_wanting = not n_ready
        self.answers.begin()
        return min(n_ready, at_most)

    def _agreeing(self, waiting: Sequence[Any]) -> Shadow:
        """Return a shadow in the partition's state, or ahead of it.

        It may be ahead by observations that are not handled yet.
        """
        concerned = self._concerned(waiting)
        shadow = self._shadow
        if (
            shadow is None
            or shadow.offset < self._partition.offset
            or not concerned <= shadow.concerned
            or self._seen != self._now(shadow)
        ):
            with unheard():
                shadow = self._shadow = Shadow(self._partition, concerned)
            self._seen = self._now(shadow)
        return shadow

    def _now(self, shadow: Shadow) -> object:
        """Return a value that changes with the shadow's models.

        Handling an observation does not change it; other changes of the models do.
        """
        models = self._partition.models
        states = {model_id: models.get(model_id) for model_id in sorted(shadow.concerned)}
        return [
            (name, id(state), state and state.stride, id(models.log_if_loaded(name)), name in models.refused)
            for name, state in states.items()
        ]

    def _show(self, shadow: Shadow, record: Any) -> None:
        """Let a shadow handle a record, with the answers that there are."""
        self.answers.model_id = self._partition.config.finder.id_of_key(record.key) or ""
        with answering(self.answers):
            shadow.handle(record_from_client(record))

    def _concerned(self, records: Sequence[Any]) -> set[str]:
        id_of = self._partition.config.finder.id_of_key
        return {model_id for one in records if (model_id := id_of(one.key)) and self._concerns(one.key)}

    def _concerns(self, key: bytes | None) -> bool:
        """Return whether a record with this key may ask a served model."""
        partition = self._partition
        model_id = partition.config.finder.id_of_key(key)
        if model_id is None:
            return False
        if isinstance(partition.config.settings_of(model_id).model, ServedConfig):
            return True
        if model_id in partition.models.refused:
            return False
        state = partition.models.get(model_id)
        if state is not None and state.asks_endpoints:
            return True
        with suppress(DamagedStateError):  # its observations are dead letters
            return any(SERVED_NAME in entry.model for entry in partition.models.log(model_id).entries)
        return False

    @contextmanager
    def answering(self, key: bytes | None) -> Iterator[None]:
        """Use the known answers of served models inside the block.

        A record with this key is handled inside it.
        """
        self.answers.model_id = self._partition.config.finder.id_of_key(key) or ""
        with answering(self.answers, self._ask_now):
            yield

    def note_handled(self, n: int) -> None:
        """Note that `n` observations were handled.

        Once all are handled for which answers were asked, the answers are forgotten.
        """
        self._n_left = max(self._n_left - n, 0)
        if not self._n_left:
            self.answers.forget()
        if self._shadow is not None:
            self._seen = self._now(self._shadow)

    def _ask_now(self, model_id: str, group: Group, rows: Sequence[Values]) -> None:
        self.n_unforeseen += 1
        self._shadow = None
        logger.error(
            "model %s: rows of an observation had not been foreseen, and the worker waits for their answers; please "
            "report this",
            model_id,
        )
        self._endpoints.ask_now(self.answers, model_id, group, rows)

    async def ask(self, waiting: Sequence[Any]) -> None:
        """Ask for the answers that the waiting records will want.

        Ends when they are there, or when the partition goes.
        """
        # Before the next observation is handled nothing is forgotten twice: it would be asked for again and again.
        if self.answers.n_known > MOST_KNOWN and self._partition.offset > self._forgot_at:
            self.answers.forget()
            self._forgot_at = self._partition.offset
        wanted = await self._look(waiting[:MOST_RECORDS])
        self.is_wanting = False
        if not wanted or self._is_leaving:
            return
        view, number = self._endpoints.view, self._partition.number
        for model_id in {one.model_id for one in wanted}:
            view.begin_waiting(number, model_id)
        self._asking = asyncio.ensure_future(self._endpoints.ask(wanted, self.answers))
        try:
            await asyncio.wait([self._asking])
            if not self._asking.cancelled():
                self._asking.result()
        finally:
            self._asking.cancel()  # does nothing where it is done
            view.end_waiting(number)

    async def _look(self, waiting: Sequence[Any]) -> list[Wanted]:
        """Return the calls that waiting records will make, as far as known.

        Some calls depend on answers that are not there yet.
        """
        n_looked, answers, shadow = 0, self.answers, None
        answers.begin()
        while n_looked < len(waiting) and answers.n_rows < MOST_ROWS and not self._is_leaving:
            began = self._clock()
            with unheard():
                shadow = shadow or Shadow(self._partition, self._concerned(waiting))
                while n_looked < len(waiting) and answers.n_rows < MOST_ROWS and self._clock() - began < LOOK_S:
                    self._show(shadow, waiting[n_looked])
                    n_looked += 1
            await asyncio.sleep(0)
        wanted = list(answers.wanted.values())
        answers.begin()
        self._n_left = n_looked
        return wanted

    def leave(self) -> None:
        """Give up the questions under way.

        The partition goes, or its waiting records are another owner's.
        """
        self._is_leaving = True
        if self._asking is not None:
            self._asking.cancel()

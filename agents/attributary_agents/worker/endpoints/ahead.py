"""Has the answers of served models there before the observations are handled that need them.

A model answers over the network, and an observation may not wait in the middle of its way: it would hold up the event
loop, or be half handled when the partition goes. So a shadow of the partition (`shadow`) takes the observations that
wait first, with placeholders for answers that are not known, and shows which rows the models will be asked for: draws
do not depend on predictions. These are asked for beside everything else, in few requests, while nothing of the
partition changes. Once a shadow finds all answers of an observation, the partition itself handles it, in the same turn
of the event loop. What is asked depends on answers only where a change is explained: then it takes another round.

A partition whose endpoint is away waits between two observations, as if none had come: checkpoints, rebalances and a
stop take their course. What is killed meanwhile has done nothing yet.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...config.served import ServedConfig
from ...models.artefacts.served.answers import Answers, Group, answering
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

REHEARSE_S = 0.05
"""Longest that a shadow handles observations in one turn of the event loop; one at least."""


class Ahead:
    """Asks for what the observations of one partition will need."""

    def __init__(self, partition: Partition, endpoints: Endpoints, clock: Callable[[], float] = time.monotonic) -> None:
        self._partition = partition
        self._endpoints = endpoints
        self._clock = clock
        self._asking: asyncio.Future[None] | None = None
        self._n_left = 0
        """Observations for which answers were asked, and which are not handled."""
        self.answers = Answers()
        self.n_unforeseen = 0
        """Calls that no shadow had foreseen: each is a fault, for which an observation has waited."""

    @property
    def is_wanting(self) -> bool:
        """Whether answers have to be asked for before anything else is handled."""
        return bool(self.answers.wanted)

    def n_ready(self, waiting: Sequence[Any]) -> int:
        """Return how many of the first records that wait can be handled now; note what the others want.

        Nothing may come in between: what is ready is so for the partition as it is now.

        Parameters
        ----------
        waiting
            Records of the client that could be handled one after another, if no endpoint had to be asked.
        """
        answers = self.answers
        answers.begin()
        n_plain = next((n for n, one in enumerate(waiting) if self._concerns(one.key)), len(waiting))
        if n_plain:
            return n_plain
        records = waiting[:MOST_RECORDS]
        id_of = self._partition.config.finder.id_of_key
        concerned = {model_id for one in records if self._concerns(one.key) and (model_id := id_of(one.key))}
        began, n_ready, n_looked = self._clock(), 0, 0
        with unheard():
            shadow = Shadow(self._partition, concerned)
            for one in records:
                answers.model_id = id_of(one.key) or ""
                with answering(answers):
                    shadow.handle(record_from_client(one))
                n_looked += 1
                if not answers.wanted:
                    n_ready = n_looked
                if answers.n_rows >= MOST_ROWS or self._clock() - began >= REHEARSE_S:
                    break
                if answers.wanted and n_ready:
                    break
        if n_ready:
            answers.begin()  # what is behind is looked at once more, from where these have led
        else:
            self._n_left = max(self._n_left, n_looked)
        return n_ready

    def _concerns(self, key: bytes | None) -> bool:
        """Return whether a model that is served may be asked at a record with this key."""
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
        return any(SERVED_NAME in entry.model for entry in partition.models.log(model_id).entries)

    @contextmanager
    def answering(self, key: bytes | None) -> Iterator[None]:
        """Let the answers that are there be those of the served models, while a record with this key is handled."""
        self.answers.model_id = self._partition.config.finder.id_of_key(key) or ""
        with answering(self.answers, self._ask_now):
            yield

    def note_handled(self, n: int) -> None:
        """Note that so many observations were handled; forget the answers once those were for which they were asked."""
        self._n_left -= n
        if self._n_left <= 0:
            self._n_left = 0
            self.answers.forget()

    def _ask_now(self, model_id: str, group: Group, rows: Sequence[Values]) -> None:
        self.n_unforeseen += 1
        logger.error(
            "model %s: rows of an observation had not been foreseen, and the worker waits for their answers; please "
            "report this",
            model_id,
        )
        self._endpoints.ask_now(self.answers, model_id, group, rows)

    async def ask(self) -> None:
        """Ask for what is wanted; end when it is answered, or when the partition goes."""
        wanted, view, number = list(self.answers.wanted.values()), self._endpoints.view, self._partition.number
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
            self.answers.begin()

    def leave(self) -> None:
        """Give up what is asked: the partition goes, or what waits is another's."""
        if self._asking is not None:
            self._asking.cancel()

"""Client of an endpoint, for all partitions of a worker.

It limits how many requests there are at a time, retries them, and has a breaker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ...config.served import ServedConfig
from ...models.artefacts.served.client import Client
from ...models.artefacts.served.errors import NotNowError, ServedError
from ...models.artefacts.served.retrying import attempts
from .breaker import Breaker
from .counts import EndpointCounts

logger = logging.getLogger(__name__)


class Question(NamedTuple):
    """Request to an endpoint, and the function that reads its answer.

    Attributes
    ----------
    most
        Longest answer in bytes.
    read
        Returns the predictions in an answer, or raises ServedError: such an answer counts as refused.
    """

    address: str
    body: bytes
    most: int
    read: Callable[[bytes], list[Any]]


class Endpoint:
    """An address that served models are asked at, and how it is."""

    def __init__(self, config: ServedConfig, client: Client | None = None, breaker: Breaker | None = None) -> None:
        self.config = config
        self.breaker = breaker or Breaker(config.breaker)
        self._client = client or Client(config)
        self._room = asyncio.Semaphore(config.max_in_flight)

    async def ask(self, question: Question, counts: EndpointCounts) -> list[Any]:
        """Return the endpoint's predictions, however long that takes.

        Parameters
        ----------
        counts
            Those of the model that is asked.

        Raises
        ------
        ServedError
            It refuses the rows, or its answer is of no use.
        """
        while True:
            async with self._room:
                is_trial = await self.breaker.admit()
                is_known = False
                try:
                    found = await self._attempt(question, counts, 0 if is_trial else None)
                    is_known = True
                    self._note_answer(is_trial=is_trial)
                    return found
                except NotNowError as error:
                    is_known = True
                    self._note_failure(error, is_trial=is_trial)
                except ServedError:
                    is_known = True
                    self._note_answer(is_trial=is_trial)
                    raise
                finally:
                    if not is_known:
                        self.breaker.leave(is_trial=is_trial)

    async def _attempt(self, question: Question, counts: EndpointCounts, retries: int | None) -> list[Any]:
        n_left = 1 + (self.config.retries if retries is None else retries)
        async for attempt in attempts(self.config, retries):
            with attempt:
                n_left -= 1
                began = time.perf_counter()
                try:
                    answer = await self._client.send(question.address, question.body, question.most)
                    took = time.perf_counter() - began
                    found = question.read(answer)
                except NotNowError:
                    counts.note("retried" if n_left else "failed", time.perf_counter() - began)
                    raise
                except ServedError:
                    counts.note("refused", time.perf_counter() - began)
                    raise
                counts.note("ok", took)
                return found
        raise AssertionError("the last attempt returns or raises")

    def _note_answer(self, *, is_trial: bool) -> None:
        self.breaker.note_success()
        if is_trial:
            logger.info("%s answers again: its observations wait no longer", self.config.served)

    def _note_failure(self, error: NotNowError, *, is_trial: bool) -> None:
        if self.breaker.note_failure(is_trial=is_trial):
            logger.warning(
                "%s does not answer (%s): observations of its models wait, and it is tried now and then",
                self.config.served,
                error,
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

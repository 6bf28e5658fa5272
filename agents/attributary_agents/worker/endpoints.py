"""Endpoints of served models: permission, requests, counts."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..config.served import ServedConfig, is_address_allowed
from ..config.settings import Config
from ..errors import ConfigError
from ..models.artefacts.served.answers import Answers, Call
from ..models.artefacts.served.client import Client, attempts
from ..models.artefacts.served.errors import NotNowError, ServedError, UnnamedError
from ..models.artefacts.served.protocol import Values, protocol_of
from ..models.artefacts.served.served import Served
from .threads import in_thread

logger = logging.getLogger(__name__)

OUTCOMES = ("ok", "retried", "refused")
"""What can become of a request: answered; to be sent again; refused, or of no use."""

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

AWAY = 4
"""Attempts at a request without an answer, from which on the log says that the endpoint is away."""


class EndpointCounts:
    """Counts of the requests for a model since the worker began."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.times = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def note(self, outcome: str, seconds: float) -> None:
        """Count a request, and how long it took."""
        self.outcomes[outcome] += 1
        self.times[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds


class EndpointsView:
    """Endpoints as a scrape sees them.

    Parameters
    ----------
    clock
        Seconds; for tests.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.counts: dict[str, EndpointCounts] = {}
        """By model id."""
        self._waiting: dict[tuple[int, str], float] = {}

    def of(self, model_id: str) -> EndpointCounts:
        """Return the counts of a model."""
        return self.counts.setdefault(model_id, EndpointCounts())

    def begin_waiting(self, partition: int, model_id: str) -> None:
        """Note that observations of a partition wait for answers for a model."""
        self.of(model_id)
        self._waiting.setdefault((partition, model_id), self._clock())

    def end_waiting(self, partition: int) -> None:
        """Note that a partition waits for no answer."""
        for place in [place for place in self._waiting if place[0] == partition]:
            del self._waiting[place]

    def waiting_s(self, model_id: str) -> float:
        """Return the seconds observations have waited for a model's answers.

        0 where none wait.
        """
        since = [at for (_, name), at in self._waiting.copy().items() if name == model_id]
        return max(self._clock() - min(since), 0.0) if since else 0.0


class Endpoints:
    """Endpoints of the served models of a worker."""

    def __init__(self, config: Config, view: EndpointsView) -> None:
        self._config = config
        self.view = view
        self._clients: dict[str, Client] = {}
        self._away: set[str] = set()

    def settings(self, model_id: str, served: Served) -> ServedConfig:
        """Return how requests for a served model are made.

        What the configuration says of the model holds where it names the same address. Another one, which a deployment
        or a stored state names, has no headers and no token, and is used only where `control.allowed` has it.

        Raises
        ------
        UnnamedError
            Neither names the address.
        """
        model = self._config.find(model_id)
        configured = None if model is None else model.model
        if isinstance(configured, ServedConfig) and configured.served == served.url:
            return configured
        if is_address_allowed(served.url, self._config.control.allowed):
            return ServedConfig(served=served.url)
        raise UnnamedError(served.url)

    async def fetch(self, calls: Sequence[Call], answers: Answers) -> None:
        """Fetch the answers to some calls, however long that takes."""
        by_model: dict[tuple[str, Served], list[Call]] = {}
        for call in calls:
            by_model.setdefault((call.model_id, call.served), []).append(call)
        async with asyncio.TaskGroup() as tasks:
            for own in by_model.values():
                tasks.create_task(self._fetch(own, answers))

    async def _fetch(self, calls: Sequence[Call], answers: Answers) -> None:
        """Fetch the answers to calls of a model, in as few requests as may be.

        Where they are refused together, each half of them is asked for by itself.
        """
        model_id, served, _ = calls[0]
        try:
            settings = self.settings(model_id, served)
            rows: dict[bytes, Values] = {}
            for call in calls:
                rows |= answers.missing(call)
            keys = list(rows)
            for at in range(0, len(keys), settings.max_rows):
                part = keys[at : at + settings.max_rows]
                answers.note(served, part, await self._send(model_id, served, settings, [rows[key] for key in part]))
        except ServedError as error:
            if len(calls) == 1:
                answers.refuse(calls[0], str(error))
                return
            half = len(calls) // 2
            await self._fetch(calls[:half], answers)
            await self._fetch(calls[half:], answers)

    async def _send(self, model_id: str, served: Served, settings: ServedConfig, rows: Sequence[Values]) -> list[Any]:
        """Send a request until it is answered; return the predictions."""
        name = repr(settings)
        if name not in self._clients:
            self._clients[name] = Client(settings)
        client, protocol, counts = self._clients[name], protocol_of(served), self.view.of(model_id)
        body, most = protocol.request(rows), protocol.answer_bytes(len(rows))
        async for attempt in attempts(None):
            with attempt:
                began = time.perf_counter()
                try:
                    answer = await in_thread(client.send, served.address, body, most)
                    predictions = protocol.predictions(answer, len(rows))
                except (NotNowError, ConfigError) as error:  # a file of the token may be about to be exchanged
                    counts.note("retried", time.perf_counter() - began)
                    if attempt.num == AWAY:
                        self._note_away(served.url, error)
                    raise error if isinstance(error, NotNowError) else NotNowError(str(error)) from None
                except ServedError:
                    counts.note("refused", time.perf_counter() - began)
                    raise
                counts.note("ok", time.perf_counter() - began)
                self._note_answer(served.url)
        return predictions

    def _note_away(self, url: str, error: Exception) -> None:
        if url not in self._away:
            logger.warning("%s does not answer (%s): observations of its models wait until it does", url, error)
        self._away.add(url)

    def _note_answer(self, url: str) -> None:
        if url in self._away:
            logger.info("%s answers again: its observations wait no longer", url)
        self._away.discard(url)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

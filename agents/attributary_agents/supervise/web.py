"""Serves /metrics, /livez and /readyz of all workers of a machine at one address, from a process of its own.

What a worker does not answer in time is left out, and said: `attributary_worker_up` is 0.
"""

from __future__ import annotations

import logging
import signal
import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus

from aiohttp.web import Request
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..monitoring.catalogue import OF_MACHINE
from ..monitoring.web import NOT_FOUND, HttpThread, Page, SingleFlight, encoder, metrics_key, metrics_page, text_page
from .asking import Answer, Workers
from .exposition import END, merge

logger = logging.getLogger(__name__)

METRICS_WITHIN_S = 8.0
"""Longest wait for a worker's metrics: Prometheus waits for 10 s by default."""

HEALTH_WITHIN_S = 2.0
"""Longest wait for what a worker says of its health."""


class WorkersWeb:
    """The pages of all workers.

    Parameters
    ----------
    workers
        Whom to ask.
    n_restarts
        Returns how often worker `number` has been started again.
    stuck_after_s
        Seconds after which a worker that is there and does not answer counts as stuck.
    """

    def __init__(self, workers: Workers, n_restarts: Callable[[int], int], stuck_after_s: float) -> None:
        self._workers = workers
        self._n_restarts = n_restarts
        self._stuck_after_s = stuck_after_s
        self._metrics = SingleFlight(self._render)
        self._alive, self._ready = SingleFlight(self._livez), SingleFlight(self._readyz)

    def serve(self, listener: socket.socket) -> int:
        """Serve at a socket that listens, until SIGTERM ends the process."""
        server = HttpThread(listener, self.answer)
        try:
            while True:
                signal.pause()
        finally:
            server.stop()

    async def answer(self, request: Request) -> Page:
        """Return the answer to a request."""
        path = request.path
        if path == "/metrics":
            return await self._metrics.get(metrics_key(request))
        if path == "/livez":
            return await self._alive.get("")
        if path == "/readyz":
            return await self._ready.get("")
        return text_page(HTTPStatus.NOT_FOUND, NOT_FOUND)

    def _render(self, key: str) -> Page:
        """Return the merged metrics as who asks so takes them: 1 for packed or 0, and their type."""
        accept = key[1:]
        encode, content_type = encoder(accept)
        answers = self._workers.ask("/metrics", METRICS_WITHIN_S, accept)
        given = {number: one.text for number, one in answers.items() if one.status == HTTPStatus.OK}
        registry = CollectorRegistry()
        registry.register(_OfMachine(self._workers.numbers, given, self._n_restarts))
        own = encode(registry).decode()
        body = (merge(given) + own).encode()  # where the format has an end, our own text has it
        assert own.endswith(f"{END}\n") or END not in own
        return metrics_page(key, body, content_type)

    def _livez(self, _: str) -> Page:
        answers = self._workers.ask("/livez", HEALTH_WITHIN_S)
        stuck = [f"worker {n}: {one.text.strip()}" for n, one in answers.items() if one.status != HTTPStatus.OK]
        for number in self._workers.numbers:
            silent_s = self._workers.silent_s(number)
            if silent_s is not None and silent_s >= self._stuck_after_s:
                stuck.append(f"worker {number}: stuck: it has not answered for {silent_s:.0f} s")
        if stuck:
            return text_page(HTTPStatus.SERVICE_UNAVAILABLE, "; ".join(stuck))
        return text_page(HTTPStatus.OK, "alive")

    def _readyz(self, _: str) -> Page:
        answers = self._workers.ask("/readyz", HEALTH_WITHIN_S)
        why = [
            f"worker {number}: {self._why_not(number, answers.get(number))}"
            for number in self._workers.numbers
            if number not in answers or answers[number].status != HTTPStatus.OK
        ]
        if why:
            return text_page(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {'; '.join(why)}")
        return text_page(HTTPStatus.OK, "ready")

    def _why_not(self, number: int, answer: Answer | None) -> str:
        if answer is not None:
            return answer.text.strip().removeprefix("not ready: ")
        is_there = self._workers.silent_s(number) is not None
        return "it does not answer" if is_there else "it starts, or is started again in a moment"


class _OfMachine(Collector):
    """What is known of the workers without asking them, and whether they have answered."""

    def __init__(self, numbers: Iterable[int], answered: Iterable[int], n_restarts: Callable[[int], int]) -> None:
        self._numbers, self._answered, self._n_restarts = numbers, set(answered), n_restarts

    def collect(self) -> Iterable[Metric]:
        text, labels = OF_MACHINE["worker_up"]
        up = GaugeMetricFamily("attributary_worker_up", text, labels=labels)
        text, labels = OF_MACHINE["worker_restarts_total"]
        restarts = CounterMetricFamily("attributary_worker_restarts", text, labels=labels)
        for number in self._numbers:
            up.add_metric((str(number),), float(number in self._answered))
            restarts.add_metric((str(number),), float(self._n_restarts(number)))
        return up, restarts

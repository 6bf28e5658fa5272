"""Endpoints of served models: finding, asking, and who may be asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from ...config.served import ServedConfig, is_address_allowed
from ...config.settings import Config
from ...models.artefacts.served.answers import Answers, Group, Wanted
from ...models.artefacts.served.errors import ServedError, UnnamedError
from ...models.artefacts.served.model import ask_now
from ...models.artefacts.served.served import Served
from ...models.artefacts.served.words import Values, words_of
from .counts import EndpointsView
from .endpoint import Endpoint, Question


class Endpoints:
    """The endpoints that a worker asks."""

    def __init__(self, config: Config, view: EndpointsView) -> None:
        self._config = config
        self.view = view
        self._endpoints: dict[str, Endpoint] = {}

    def settings(self, model_id: str, served: Served) -> ServedConfig:
        """Return how a served model is asked.

        What the configuration says of the model holds where it names the same address. Another one, which a deployment
        or a stored state names, is asked without headers and token, and only where `control.allowed` has it.

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

    async def ask(self, wanted: Sequence[Wanted], answers: Answers) -> None:
        """Ask for the rows of some calls, and note the answers.

        Waits however long that takes.
        """
        by_model: dict[tuple[str, Served], list[Wanted]] = {}
        for one in wanted:
            by_model.setdefault((one.model_id, one.group.served), []).append(one)
        async with asyncio.TaskGroup() as tasks:
            for (model_id, served), calls in by_model.items():
                try:
                    settings = self.settings(model_id, served)
                except UnnamedError as error:
                    for call in calls:
                        answers.refuse(call.group, str(error))
                    continue
                endpoint = self._endpoint(settings)
                self.view.open[model_id] = lambda endpoint=endpoint: endpoint.breaker.is_open  # type: ignore[misc]
                for part in _parts(calls, settings.max_rows):
                    tasks.create_task(self._ask(endpoint, model_id, part, answers))

    def ask_now(self, answers: Answers, model_id: str, group: Group, rows: Sequence[Values]) -> None:
        """Ask for the rows of a call, and block until the answer is there."""
        settings = self.settings(model_id, group.served)
        answers.note(group.served, group.keys, ask_now(group.served, rows, settings))

    def _endpoint(self, settings: ServedConfig) -> Endpoint:
        name = repr(settings)
        if name not in self._endpoints:
            self._endpoints[name] = Endpoint(settings)
        return self._endpoints[name]

    async def _ask(self, endpoint: Endpoint, model_id: str, calls: list[Wanted], answers: Answers) -> None:
        """Ask for the rows of a model's calls, and note the answers.

        Where the calls are refused together, each half of them is asked by itself.
        """
        rows: dict[bytes, Values] = {}
        for call in calls:
            rows.update((call.group.keys[at], call.rows[at]) for at in answers.missing(call.group))
        served = calls[0].group.served
        words, counts = words_of(served), self.view.of(model_id)
        try:
            keys = list(rows)
            for at in range(0, len(keys), endpoint.config.max_rows):
                part = keys[at : at + endpoint.config.max_rows]
                body = words.request([rows[key] for key in part])
                n = len(part)
                question = Question(served.address, body, words.answer_bytes(n), partial(words.predictions, n=n))
                answers.note(served, part, await endpoint.ask(question, counts))
        except ServedError as error:
            if len(calls) == 1:
                answers.refuse(calls[0].group, str(error))
                return
            half = len(calls) // 2
            await self._ask(endpoint, model_id, calls[:half], answers)
            await self._ask(endpoint, model_id, calls[half:], answers)

    async def close(self) -> None:
        """Close all connections."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        self._endpoints.clear()


def _parts(calls: Sequence[Wanted], max_rows: int) -> list[list[Wanted]]:
    """Return the calls in parts of at most `max_rows` distinct rows.

    A part with more rows has a single call.
    """
    parts: list[list[Wanted]] = []
    keys: set[bytes] = set()
    for call in calls:
        own = set(call.group.keys)
        if parts and len(keys) + len(own - keys) <= max_rows:
            parts[-1].append(call)
            keys |= own
        else:
            parts.append([call])
            keys = own
    return parts

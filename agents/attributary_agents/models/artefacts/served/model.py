"""A served model, in the form that explainers use.

It predicts many rows in a single call, and does not learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attributary_explainers.models.batch import BatchModel

from ....config.served import ServedConfig
from .answers import answers_now
from .client import Client, check_installed
from .errors import NotNowError, ServedError
from .retrying import attempts
from .served import Served
from .words import Unusable, Values, words_of

SERVED_NAME = b"ServedModel"
"""What the pickle of anything holds that holds a served model."""


class ServedModel(BatchModel):
    """Model whose predictions are the answers of an endpoint.

    It holds no connection and no secret, and can be pickled. Inside `answering` the answers that are known there are
    its predictions. Elsewhere it asks the endpoint and waits: by `settings`, or as the configuration says of which it
    was made in this process.

    Raises
    ------
    NotNowError
        The endpoint does not answer, after all retries.
    ServedError
        It refuses the rows, or its answer is of no use.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.features = tuple(name for name, _ in served.features) or None
        self.classes = served.classes if served.predicts == "probabilities" else None

    @property
    def function(self) -> Callable[[Any], Any]:  # type: ignore[override]  # it is not given from outside
        """Function that predicts rows."""
        return self.predict_many

    @property
    def kind(self) -> Any:
        """Kind of model: regressor where it predicts numbers, else classifier."""
        return "regressor" if self.served.predicts == "number" else "classifier"

    def predict_many(self, rows: Sequence[Any]) -> list[Any]:
        """Return a prediction for each row."""
        words = words_of(self.served)
        values = [words.values(row) for row in rows]
        keys = [words.key(one) for one in values]
        if (now := answers_now()) is not None:
            answers, ask = now
            return answers.find(self.served, keys, values, ask)
        distinct = dict(zip(keys, values, strict=True))
        found = dict(zip(distinct, ask_now(self.served, list(distinct.values())), strict=True))
        for one in found.values():
            if isinstance(one, Unusable):
                raise ServedError(one)
        return [found[key] for key in keys]

    def __reduce__(self) -> tuple[Any, ...]:
        return ServedModel, (self.served,)

    def __repr__(self) -> str:
        return f"ServedModel({self.served.url!r})"


_SETTINGS: dict[Served, ServedConfig] = {}
_CLIENTS: dict[Served, Client] = {}


def make_served(config: ServedConfig) -> ServedModel:
    """Return the served model that the configuration describes.

    This process remembers the configuration, which says how long to wait and how often to retry.

    Raises
    ------
    ConfigError
        The extra is missing.
    """
    check_installed()
    served = Served.of(config)
    _SETTINGS[served] = config
    _CLIENTS.pop(served, None)
    return ServedModel(served)


def ask_now(served: Served, rows: Sequence[Values], settings: ServedConfig | None = None) -> list[Any]:
    """Return the predictions for some rows, and wait for them.

    Parameters
    ----------
    settings
        How it is asked; None: as it was configured in this process, or as it would be by default.

    Raises
    ------
    ConfigError, NotNowError, ServedError
        As for `Client.send_now`.
    """
    config = settings or _SETTINGS.get(served) or ServedConfig(served=served.url)
    if served not in _CLIENTS:
        _CLIENTS[served] = Client(config)
    client, words = _CLIENTS[served], words_of(served)
    found: list[Any] = []
    for at in range(0, len(rows), config.max_rows):
        part = rows[at : at + config.max_rows]
        body, most = words.request(part), words.answer_bytes(len(part))
        try:
            for attempt in attempts(config):
                with attempt:
                    answer = client.send_now(served.address, body, most)
        except NotNowError as error:
            raise NotNowError(f"{served.url}: {error}") from None
        found += words.predictions(answer, len(part))
    return found

"""A served model, in the form that explainers use.

It predicts many rows in a single call, and does not learn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attributary_explainers.models.batch import BatchModel

from ....config.served import ServedConfig
from .answers import current_answers
from .client import Client, attempts, check_installed
from .errors import NotNowError
from .protocol import Values, protocol_of
from .served import Served

SERVED_NAME = b"ServedModel"
"""What the pickle of anything holds that holds a served model."""


class ServedModel(BatchModel):
    """Model whose predictions are the answers of an endpoint.

    It holds no connection and no secret, and can be pickled. Inside `answering` the answers that are there are its
    predictions. Elsewhere it sends a request and waits, as the configuration says of which it was made in this process.

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
        protocol = protocol_of(self.served)
        values = [protocol.values(row) for row in rows]
        keys = [protocol.key(row) for row in values]
        distinct = dict(zip(keys, values, strict=True))
        if (current := current_answers()) is not None:
            answers, fail = current
            predictions = answers.find(self.served, distinct, fail)
        else:
            predictions = dict(zip(distinct, _request(self.served, list(distinct.values())), strict=True))
        return [predictions[key] for key in keys]

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


def _request(served: Served, rows: Sequence[Values]) -> list[Any]:
    config = _SETTINGS.get(served) or ServedConfig(served=served.url)
    if served not in _CLIENTS:
        _CLIENTS[served] = Client(config)
    client, protocol = _CLIENTS[served], protocol_of(served)
    predictions: list[Any] = []
    for at in range(0, len(rows), config.max_rows):
        part = rows[at : at + config.max_rows]
        body, most = protocol.request(part), protocol.answer_bytes(len(part))
        try:
            for attempt in attempts(config.retries):
                with attempt:
                    answer = client.send(served.address, body, most)
        except NotNowError as error:
            raise NotNowError(f"{served.url}: {error}") from None
        predictions += protocol.predictions(answer, len(part))
    return predictions

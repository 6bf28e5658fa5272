"""Settings that identify a served model, in a comparable form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from ....config.served import ServedConfig


@dataclass(frozen=True, slots=True)
class Served:
    """Identity of a served model: equal values predict the same.

    Attributes
    ----------
    features
        Names, in order, each with the type of its tensor; empty where a row says what it has.
    request
        The template as JSON; empty for that of V2.
    """

    url: str
    protocol: str
    input: str | None
    output: str | None
    features: tuple[tuple[str, str], ...]
    classes: tuple[Any, ...] | None
    predicts: str
    request: str
    answer: str

    @classmethod
    def of(cls, config: ServedConfig) -> Served:
        """Take the identity from a served model's configuration."""
        is_v2 = config.protocol == "v2"
        return cls(
            url=config.served,
            protocol=config.protocol,
            input=config.input,
            output=config.output,
            features=tuple(config.types.items()),
            classes=None if config.classes is None else tuple(config.classes),
            predicts=config.result,
            request="" if is_v2 else orjson.dumps(config.request or {"instances": "$rows"}).decode(),
            answer="" if is_v2 else config.answer,
        )

    @property
    def address(self) -> str:
        """The address that is asked."""
        if self.protocol == "json" or self.url.endswith("/infer"):
            return self.url
        return f"{self.url}/infer"

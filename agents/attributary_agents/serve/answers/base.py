"""Base types that several answers share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Milliseconds = Annotated[int, Field(description="Milliseconds since the epoch, UTC.")]
Axis = Literal["time", "observation"]
"""What the horizontal axis counts."""


class Answer(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Loss(Answer):
    """Names the loss whose unit importances and losses have; see `attributary_topics.events.ImportanceEvent`."""

    name: str
    unit: str
    largest: float | None
    text: str = Field(description="The same in words: 'cross-entropy, in nats'.")


class PairOfMoments(Answer):
    """Names two moments that are worth comparing, as /compare takes them: MODEL@#OBSERVATION."""

    a: str
    b: str

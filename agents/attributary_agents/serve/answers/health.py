"""Answer on the server's health: alive, reading position, brokers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Answer, Milliseconds


class WebhookCount(Answer):
    """Counts what became of the events for one webhook since the server began."""

    name: str
    sent: int
    failed: int
    last_failure: str | None = Field(description="The last event that was lost, and why.")


class Health(Answer):
    """Says whether the page can be believed to be alive."""

    build: str = Field(description="Version of Attributary, and of the page.")
    position: int = Field(description="Id of the latest live event.")
    broker: Literal["answers", "away", "none"] = Field(description="none: a file, which reads no Kafka.")
    broker_since_ms: Milliseconds | None
    is_reading_past: bool = Field(description="Whether it still reads what the topics had when it began.")
    read_share: float | None = Field(description="How far it has read that, in [0, 1].")
    last_event_ms: Milliseconds | None = Field(description="When it read the last event, by its own clock.")
    importances_topic: str
    webhooks: list[WebhookCount]
    fault: str | None = Field(None, description="Why nothing new is taken, in a sentence; null where all is well.")

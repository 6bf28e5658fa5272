"""Answer to Grafana: the moments that a dashboard marks."""

from __future__ import annotations

from pydantic import Field, RootModel

from .base import Answer, Milliseconds


class Annotation(Answer):
    """Marks a moment, or a region where it ends later; named as Grafana has it."""

    id: str
    time: Milliseconds
    timeEnd: Milliseconds  # noqa: N815 - Grafana's name
    title: str
    text: str
    tags: list[str] = Field(description="Model id, what happened, how far it is, how bad it is.")


class Annotations(RootModel[list[Annotation]]):
    """Lists annotations, the newest first."""

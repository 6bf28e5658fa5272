"""Answer to a request that cannot be answered."""

from __future__ import annotations

from pydantic import Field

from .base import Answer


class Problem(Answer):
    """Says what is wrong with a request, as RFC 9457 has it."""

    type: str
    title: str = Field(description="What the status means.")
    status: int
    detail: str = Field(description="What is wrong with this request.")
    suggestion: str | None = Field(description="What helps, where that is known.")

"""Errors for questions without an answer: title, detail and remedy.

As RFC 9457 has them.
"""

from __future__ import annotations

from ...errors import AttributaryError
from .words import name


class ViewError(AttributaryError):
    """A question cannot be answered.

    Parameters
    ----------
    title
        What kind of fault it is, the same each time.
    detail
        What was asked, what of it is wrong, and what helps.
    suggestion
        The name that was probably meant, as it is written; empty where none is like what was asked for.
    """

    def __init__(self, title: str, detail: str, suggestion: str = "") -> None:
        super().__init__(f"{detail} Did you mean '{name(suggestion)}'?" if suggestion else detail)
        self.title = title
        self.detail = detail
        self.suggestion = suggestion


class NotFoundError(ViewError):
    """There is nothing of the name that was asked for."""


class WrongQuestionError(ViewError):
    """A question that cannot be parsed."""

"""Errors of questions that cannot be answered, with a title, a detail and what to do instead (RFC 9457)."""

from __future__ import annotations

from ...errors import AttributaryError


class ViewError(AttributaryError):
    """A question cannot be answered.

    Parameters
    ----------
    title
        What kind of fault it is, the same each time.
    detail
        What was asked, and what of it is wrong.
    suggestion
        What to ask instead; empty where nothing is known to be better.
    nearest
        The one name that was probably meant; None where none is like it.
    """

    def __init__(self, title: str, detail: str, suggestion: str = "", nearest: str | None = None) -> None:
        super().__init__(f"{detail} {suggestion}".strip())
        self.title = title
        self.detail = detail
        self.suggestion = suggestion
        self.nearest = nearest


class NotFoundError(ViewError):
    """There is nothing of the name that was asked for."""


class WrongQuestionError(ViewError):
    """What was asked for cannot be read."""

"""Says once what went wrong beside the requests of a service, and keeps what is to be raised."""

from __future__ import annotations

import logging

from attributary_topics.errors import without_text

logger = logging.getLogger(__name__)

_MOST_SAID = 1000

_REMEDIES = {
    "wrong_label": "give labels as the model's classes are written, or finite numbers; those that come later by "
    "predict(…, id=…) and label(…)",
    "prediction_not_finite": "the model predicts NaN, infinity, or a number so large that no loss takes it",
    "model_failed": "Monitor(on_error='raise') raises it, with its text",
    "publish": "it is not sent again",
}
"""What to do about it, or what becomes of it, by what went wrong."""


class Complaints:
    """Tells the log of errors, once by model and kind: no values, and not a line for every observation.

    Parameters
    ----------
    keeps
        Whether the first error is kept, to be raised.
    """

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._kept: Exception | None = None
        self._said: set[tuple[str, str]] = set()

    def say(self, model_id: str, what: str, error: Exception, said: str) -> None:
        """Tell of an error of a model.

        Parameters
        ----------
        what, said
            What went wrong in one word, and what became of it.
        """
        text = without_text(error)
        if (model_id, text) in self._said:
            return
        if len(self._said) < _MOST_SAID:
            self._said.add((model_id, text))
        remedy = f"; {_REMEDIES[what]}" if what in _REMEDIES else ""
        logger.warning("model %s: %s (%s): %s%s. Further ones are only counted", model_id, said, what, text, remedy)

    def keep(self, error: Exception) -> None:
        """Keep the first error since the last one was raised, where that is wanted."""
        if self._keeps and self._kept is None:
            self._kept = error

    def raise_kept(self) -> None:
        """Raise what is kept, if there is something."""
        kept, self._kept = self._kept, None
        if kept is not None:
            raise kept

"""MLflow's registry as seen by this process, for scrapes and the log.

A scrape reads it; the log says each thing once.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

logger = logging.getLogger(__name__)

LOOK, TAKE = "look", "take"
"""What is tried again: to deploy what an alias names, or to take what is deployed."""


class RegistryBoard:
    """Knowledge of the registry in this process; empty until it has asked."""

    def __init__(self) -> None:
        self.is_up: bool | None = None
        """Whether the last question was answered; None before the first, and where this process asks nothing."""
        self.answered_at: float | None = None
        """When the last one was, in seconds since the epoch."""
        self.missing: dict[str, str] = {}
        """Model id to what the registry lacks: the alias, the version, the model."""
        self.retried: dict[tuple[str, str], str] = {}
        """What is tried again and the model id to why, for as long as that lasts."""
        self.n_sent: Counter[str] = Counter()
        """Model id to the versions that this process has deployed."""
        self._looks = False
        self._n_fetching = 0

    def note_answer(self) -> None:
        """Note that the registry has answered."""
        if self.is_up is False:
            logger.info("MLflow's registry answers again")
        self.is_up, self.answered_at = True, time.time()

    def note_away(self, why: str) -> None:
        """Note that it could not be asked."""
        if self.is_up is not False:
            logger.warning("MLflow's registry cannot be asked, and is asked again until it can: %s", why)
        self.is_up = False

    def note_missing(self, model_id: str, what: str) -> None:
        """Note that the registry lacks something of a model.

        The model keeps the version that it has.
        """
        if self.missing.get(model_id) != what:
            logger.warning("models.%s: %s; its version stays", model_id, what)
        self.missing[model_id] = what

    def note_there(self, model_id: str) -> None:
        """Note that it lacks nothing of a model."""
        self.missing.pop(model_id, None)

    def note_retried(self, what: str, model_id: str, why: str) -> None:
        """Note that a version cannot be fetched or built now, and is retried.

        The model keeps the version that it has meanwhile.
        """
        if (what, model_id) not in self.retried:
            logger.warning("model %s: %s; it is tried again, and the model keeps what it has meanwhile", model_id, why)
        self.retried[what, model_id] = why

    def note_tried(self, what: str, model_id: str) -> None:
        """Note that nothing of a model is tried again."""
        if self.retried.pop((what, model_id), None) is not None:
            logger.info("model %s: no version is tried again any more", model_id)

    def begin_looking(self) -> None:
        """Note that this process looks at aliases from now on."""
        self._looks = True

    def forget(self) -> None:
        """Note that another process looks at aliases from now on."""
        self._looks = False
        self.missing.clear()
        for key in [key for key in self.retried if key[0] == LOOK]:
            del self.retried[key]
        self._forget_answers()

    def begin_fetching(self) -> None:
        """Note that the files of a version are being fetched."""
        self._n_fetching += 1

    def end_fetching(self) -> None:
        """Note that they are, or are not wanted any more."""
        self._n_fetching -= 1
        self._forget_answers()

    def _forget_answers(self) -> None:
        """Forget the registry's answers if this process asks nothing any more.

        Whether the registry is up would never be corrected.
        """
        if not self._looks and not self._n_fetching:
            self.is_up = self.answered_at = None

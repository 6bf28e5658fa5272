"""Holds what a scrape sees of MLflow's registry in this process, and says it in the log once."""

from __future__ import annotations

import logging
import time
from collections import Counter

logger = logging.getLogger(__name__)


class RegistryBoard:
    """What this process knows of the registry: nothing until it has asked."""

    def __init__(self) -> None:
        self.is_up: bool | None = None
        """Whether the last question was answered; None before the first, and where another process asks."""
        self.answered_at: float | None = None
        """When the last one was, in seconds since the epoch."""
        self.missing: dict[str, str] = {}
        """Model id to what the registry lacks: the alias, the version, the model."""
        self.n_sent: Counter[str] = Counter()
        """Model id to the versions that this process has deployed."""

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
        """Note what the registry lacks of a model, which keeps the version that it has."""
        if self.missing.get(model_id) != what:
            logger.warning("models.%s: %s; its version stays", model_id, what)
        self.missing[model_id] = what

    def note_there(self, model_id: str) -> None:
        """Note that it lacks nothing of a model."""
        self.missing.pop(model_id, None)

    def forget(self) -> None:
        """Note that another process asks from now on."""
        self.is_up = self.answered_at = None
        self.missing.clear()

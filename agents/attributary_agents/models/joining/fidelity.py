"""Log messages about mirrors that differ from the model they mirror."""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

TRUSTED = 1000
"""Observations of a version of a mirror before its fidelity is looked at: until then it is only becoming alike."""

_RECOVERED = 0.1
"""Part of the way from its limit to 1 that the fidelity goes up again before another fall of it is said."""


class Doubt:
    """Flag of a doubted mirror, to log the doubt once until it recovers.

    It is no part of what is stored: a worker that takes over a mirror that is doubted says it again.
    """

    def __init__(self) -> None:
        self.is_open = False

    def look(self, model_id: str, fidelity: float | None, limit: float, n_scored: int, observation: int) -> None:
        """Log that a mirror's fidelity fell below its limit, or recovered.

        Parameters
        ----------
        n_scored
            Observations of the present version that the fidelity is of.
        observation
            Number of the model's observation.
        """
        if fidelity is None or n_scored < TRUSTED:
            return
        if not self.is_open and fidelity < limit:
            self.is_open = True
            logger.warning(
                "model %s: the mirror's fidelity is %.2f, below %g (models.%s.fidelity), at its observation %d: it "
                "explains too little of the logged predictions for its importances to be those of the model in service",
                *(model_id, fidelity, limit, model_id, observation),
            )
        elif self.is_open and fidelity >= limit + _RECOVERED * (1 - limit):
            self.is_open = False
            logger.info("model %s: the mirror's fidelity is %.2f again", model_id, fidelity)

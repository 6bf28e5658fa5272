"""Says as soon as a model is stored, and not at the next start, that a type in it could not be read back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from attributary_explainers import dump_model

from ...errors import ForeignTypeError

logger = logging.getLogger(__name__)


class LateTypes:
    """Remembers the classes and functions that the dumps of one model have named."""

    def __init__(self) -> None:
        self._named: dict[int, Any] = {}

    def dump(self, model: Any, model_id: str, check: Callable[[Sequence[Any]], None]) -> bytes:
        """Return the model's bytes; log an error where they name what no dump before did and `check` refuses.

        Parameters
        ----------
        check
            Raises ForeignTypeError for classes and functions that stored models may not hold.
        """
        named: dict[int, Any] = {}
        data = dump_model(model, named)
        if not named.keys() <= self._named.keys():
            new = [one for key, one in named.items() if key not in self._named]
            self._named.update(named)  # keeps them, so that no other object gets one of their ids
            try:
                check(new)
            except ForeignTypeError as error:
                logger.error("model %s: its state could not be read back at the next start: %s", model_id, error)
        return data

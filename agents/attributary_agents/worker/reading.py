"""Reads the observations of one model: decodes them, and checks what can be checked of each by itself."""

from __future__ import annotations

from attributary_topics import Observation, ObservationDecoder

from ..config.models import ModelConfig
from ..models.guards.limits import check_size, check_something_there, within_bounds
from ..models.guards.ranges import check_label_bounds


class ObservationReader:
    """Reads the observations of one model; what does not change from one to the next is made once.

    An observation of the same features as the one read before, without a missing value and no longer than text may be,
    cannot be too large nor empty: nothing more is asked of it.

    Parameters
    ----------
    key
        The key of the model's records.
    max_bytes
        Longest value that is decoded at all.
    template
        The template that the model is configured by; None: by its own id.

    Raises
    ------
    InvalidRecordError
        The key is no model id.
    """

    def __init__(self, key: bytes, config: ModelConfig, max_bytes: int, template: str | None = None) -> None:
        self._config = config
        # A character takes a byte at least, so that no text in a value is longer than the value.
        self._decoder = ObservationDecoder(key, features=config.features, max_bytes=max_bytes)
        self.model_id = self._decoder.model_id
        self.template = template
        self._no_larger = min(max_bytes, config.max_text)
        self._is_bounded = bool(config.bounds) or config.label_bounds is not None

    def read(self, value: bytes | None) -> Observation:
        """Return the observation in a record's value, with its numbers within their bounds.

        Raises
        ------
        InvalidRecordError
            It cannot be used, whatever came before.
        """
        observation = self._decoder.decode_like(value)
        if observation is None or len(value) > self._no_larger:  # type: ignore[arg-type]  # there is one
            observation = self._decoder.decode(value)
            check_size(observation, self._config)
            check_something_there(observation, self._config)
            self._decoder.know(observation.x)
        if not self._is_bounded:
            return observation
        check_label_bounds(observation.y, self._config)
        return within_bounds(observation, self._config)

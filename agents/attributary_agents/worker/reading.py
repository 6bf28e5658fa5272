"""Decoding and checking of a model's records, each by itself."""

from __future__ import annotations

from typing import NoReturn

from attributary_topics import (
    LABEL,
    OBSERVATION,
    REQUEST,
    RESPONSE,
    InvalidRecordError,
    Needs,
    Observation,
    ObservationDecoder,
    decode_arrival,
)

from ..config.models import ModelConfig
from ..models.guards.limits import check_size, check_something_there, within_bounds
from ..models.guards.ranges import check_label_bounds
from ..models.joining.arrive import Arrival


class ObservationReader:
    """Reader of a model's observations.

    All that does not change between observations is made once.

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
        self._max_bytes = max_bytes
        self._needs = _needs(config)
        self.is_whole = self._needs == Needs()
        """Whether each record is an observation with its label in it."""

    def read(self, value: bytes | None) -> Observation:
        """Return a record's observation, with its numbers within bounds.

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

    def read_arrival(self, value: bytes | None, kind: str) -> Arrival:
        """Decode a record of a model with partial or unlabelled observations.

        Parameters
        ----------
        kind
            What the record is, as its header says.

        Raises
        ------
        InvalidRecordError
            It cannot be used, whatever came before.
        """
        config = self._config
        arrival = decode_arrival(
            self.model_id, value, kind, self._needs, features=config.features, max_bytes=self._max_bytes
        )
        if isinstance(arrival, Observation):
            check_size(arrival, config)
            check_something_there(arrival, config)
            if self._needs.label:
                check_label_bounds(arrival.y, config)
            return within_bounds(arrival, config) if config.bounds else arrival
        if kind == LABEL:
            check_label_bounds(arrival.y, config)  # type: ignore[union-attr]  # a label has one
        return arrival

    def refuse(self, kind: str) -> NoReturn:
        """Refuse a record that is no observation, of a model that has no others.

        Raises
        ------
        InvalidRecordError
            `unexpected_record`.
        """
        expected = f"observation: the configuration has no more for the model {self.model_id!r}"
        raise InvalidRecordError("unexpected_record", "attributary-record", expected, kind)


def _needs(config: ModelConfig) -> Needs:
    """Return which parts and labels a model's observations need."""
    join = config.join
    kinds = {OBSERVATION}
    if join is not None and join.ttl_ms is not None:
        kinds.add(LABEL)
    if join is not None and join.pair_ms is not None:
        kinds |= {REQUEST, RESPONSE}
    is_late = LABEL in kinds
    return Needs(
        id=is_late,
        label=config.mode == "labelled" and not is_late and REQUEST not in kinds,
        prediction=config.mode == "mirror",
        unread=config.mode == "anomaly",
        kinds=frozenset(kinds),
    )

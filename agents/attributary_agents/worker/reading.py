"""Reading of records: decoding, checks, and the topic they come from.

A record is of our observations topic, or is mapped from another by `attributary map`, whose header says where it comes
from; the partition's `Origins` decide whether that has been taken before. With `key: direct` of a source the topic of
others is read itself, and the key of its records is the model id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..config.settings import Config
from .records import Record

if TYPE_CHECKING:
    from ..sources.formats.base import Format
    from ..sources.mapping import Mapping
from typing import NoReturn

from attributary_topics import (
    LABEL,
    OBSERVATION,
    ORIGIN_HEADER,
    REQUEST,
    RESPONSE,
    InvalidRecordError,
    Needs,
    Observation,
    decode_arrival,
    decode_model_id,
    decode_origin,
    find_header,
    read_observation,
    replayed_id,
)

from ..config.models import ModelConfig
from ..models.guards.limits import check_size, check_something_there, within_bounds
from ..models.guards.ranges import check_label_bounds
from ..models.join import Arrival
from ..state.deduplication import MOST_PLACES, Origins


class DirectReading:
    """Converter of a direct source's records into values of our own.

    They are read again as ours are, so that the same is refused in both.
    """

    def __init__(self, mapping: Mapping, format_: Format) -> None:
        self._mapping, self._format = mapping, format_

    def value_of(self, record: Record) -> bytes | None:
        """Return a record's observation value; None where it is passed over.

        Raises
        ------
        InvalidRecordError
            It is none.
        """
        from ..sources.records import OriginRecord

        origin = OriginRecord(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms,
            record.key,
            record.value,
            record.headers,
        )
        decoded = self._format.decode_now(origin)
        assert decoded is not None  # of the formats that are allowed none has to wait
        mapped = self._mapping.map(origin, decoded)
        return orjson.dumps(mapped[0].fields) if mapped else None


def direct_reading(config: Config) -> DirectReading | None:
    """Return the reader of the direct source; None without such a source."""
    if config.direct is None:
        return None
    from ..sources.formats.factory import new_format
    from ..sources.mapping import Mapping

    name, source = config.direct
    return DirectReading(Mapping(name, source, config), new_format(source.format, config.kafka))


def takes(origins: Origins, record: Record) -> bool:
    """Return whether a record is taken, and note its origin.

    A record without the header of mapped records is always taken.

    A dead letter that somebody sends again on purpose has been judged when it came first.

    Raises
    ------
    InvalidRecordError
        The header cannot be read, or is of one origin partition too many.
    """
    if record.unread is not None:
        origins.note_gap()
        return True
    value = find_header(record.headers, ORIGIN_HEADER)
    if value is None or replayed_id(record.headers) is not None:
        return True
    try:
        return origins.takes(decode_origin(value)) == "accepted"
    except ValueError as error:
        expected = str(error).removeprefix("expected ")
    except OverflowError:
        expected = f"one of the {MOST_PLACES} origin partitions that have come first"
    raise InvalidRecordError("wrong_origin", ORIGIN_HEADER, expected, value)


class ObservationReader:
    """Reader of a model's observations.

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
        self.model_id = decode_model_id(key)
        self.template = template
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
        config = self._config
        observation = read_observation(self.model_id, value, features=config.features, max_bytes=self._max_bytes)
        check_size(observation, config)
        check_something_there(observation, config)
        if not self._is_bounded:
            return observation
        check_label_bounds(observation.y, config)
        return within_bounds(observation, config)

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

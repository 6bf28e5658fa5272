"""Observations read directly from a topic that is not ours.

The key of its records is the model id: `key: direct` of a source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ...config.settings import Config
from ..records import Record

if TYPE_CHECKING:
    from ...sources.formats.base import Format
    from ...sources.mapping import Mapping


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
        from ...sources.records import OriginRecord

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
    from ...sources.formats.making import new_format
    from ...sources.mapping import Mapping

    name, source = config.direct
    return DirectReading(Mapping(name, source, config), new_format(source.format, config.kafka))

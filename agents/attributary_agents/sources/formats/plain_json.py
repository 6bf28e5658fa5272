"""Format of values that are JSON objects."""

from __future__ import annotations

import orjson

from attributary_topics.codec import decode_json

from ..records import OriginRecord
from .base import Decoded, OwnFormat, as_object


class JsonFormat(OwnFormat):
    """Reads JSON; NaN in it, as Python's `json` writes it, is null."""

    def decode_now(self, record: OriginRecord) -> list[Decoded]:
        """Return the JSON object in a record's value."""
        if not record.value:
            return []
        try:
            value = orjson.loads(record.value)
        except orjson.JSONDecodeError:
            value = decode_json(record.value, nan_is_null=True)
        return [Decoded(as_object(value))]

"""A format and a mapping that are as simple as can be: flat JSON, and fields by their names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attributary_agents.config.attaching.sources import Attached, LabelsConfig, SourceConfig
from attributary_agents.config.settings import Config
from attributary_agents.sources.parts import FormatLike, MappingLike, Parts
from attributary_agents.sources.records import Mapped, OriginRecord
from attributary_topics import InvalidRecordError


class FlatJson:
    """Reads JSON objects."""

    is_waiting = False

    async def start(self) -> None:
        """Need nothing."""

    def decode_now(self, record: OriginRecord) -> list[Any]:
        """Return the object; none of a tombstone."""
        if not record.value:
            return []
        try:
            return [json.loads(record.value)]
        except ValueError:
            raise InvalidRecordError("invalid_json", "value", "JSON", record.value) from None

    async def decode(self, record: OriginRecord) -> list[Any]:
        """Return the object."""
        return self.decode_now(record)

    async def close(self) -> None:
        """Need nothing."""


@dataclass
class ByName:
    """Takes each role as the name of a field."""

    section: Attached

    def map(self, record: OriginRecord, decoded: Sequence[dict[str, Any]]) -> list[Mapped]:
        """Return a record for each model."""
        return [mapped for value in decoded for mapped in self._each(record, value)]

    def _each(self, record: OriginRecord, value: dict[str, Any]) -> list[Mapped]:
        section = self.section
        if section.where is not None and value.get(section.where) is not True:
            return []
        time_ms = value[section.time] if section.time else record.timestamp_ms
        fields = {"id": value.get(section.id or ""), "time": time_ms}
        if section.y is not None:
            fields["y"] = value[section.y]
        kind = "label" if isinstance(section, LabelsConfig) else "observation"
        roles = {section.id, section.time, section.y, section.where, "station"}
        if kind == "observation":
            fields["x"] = {name: one for name, one in value.items() if name not in roles}
        texts = section.model_texts or [] if isinstance(section, SourceConfig) else [str(section.model)]
        return [Mapped(text.format(**value), kind, time_ms, dict(fields)) for text in texts]

    def time_of(self, record: OriginRecord, decoded: Sequence[dict[str, Any]]) -> int:
        """Return the event time."""
        if not decoded or self.section.time is None:
            return record.timestamp_ms
        return int(decoded[0][self.section.time])


class StandIns(Parts):
    """Makes both."""

    def new_format(self, section: Attached, config: Config) -> FormatLike:
        """Return the format."""
        return FlatJson()

    def new_mapping(self, name: str, section: Attached, config: Config) -> MappingLike:
        """Return the mapping."""
        return ByName(section)

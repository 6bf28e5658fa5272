"""A mapping that is as simple as can be: fields by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attributary_agents.config.attaching.sources import Attached, LabelsConfig, SourceConfig
from attributary_agents.config.settings import Config
from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.mappers.parts import MappingLike, Parts
from attributary_agents.sources.records import Mapped, OriginRecord


@dataclass
class ByName:
    """Takes each role as the name of a field."""

    section: Attached

    def map(self, record: OriginRecord, decoded: Sequence[Decoded]) -> list[Mapped]:
        """Return a record for each model."""
        return [mapped for one in decoded for mapped in self._each(record, one.value)]

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

    def time_of(self, record: OriginRecord, decoded: Sequence[Decoded]) -> int:
        """Return the event time."""
        if not decoded or self.section.time is None:
            return record.timestamp_ms
        return int(decoded[0].value[self.section.time])


class StandIns(Parts):
    """Makes it for each section."""

    def new_mapping(self, name: str, section: Attached, config: Config) -> MappingLike:
        """Return the mapping."""
        return ByName(section)

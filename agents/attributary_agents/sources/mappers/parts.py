"""Says what the mapper asks of formats and mappings, and makes those of a section."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol

from ...config.attaching.sources import Attached
from ...config.settings import Config
from ..formats.base import Decoded, Format
from ..formats.making import new_format
from ..records import Mapped, OriginRecord


class MappingLike(Protocol):
    """Makes records of ours of one that is not; see `mapping`."""

    def map(self, record: OriginRecord, decoded: Sequence[Decoded]) -> list[Mapped]:
        """Return the records that are made of it; none where it is passed over."""
        ...

    def time_of(self, record: OriginRecord, decoded: Sequence[Decoded]) -> int:
        """Return its event time in milliseconds; Kafka's timestamp where it says none."""
        ...


class Parts:
    """Makes the format and the mapping of a section."""

    def new_format(self, section: Attached, config: Config) -> Format:
        """Return the format; raises ConfigError where a package or the registry is missing."""
        return new_format(section.format, config.kafka)

    def new_mapping(self, name: str, section: Attached, config: Config) -> MappingLike:
        """Return the mapping."""
        made: MappingLike = import_module(f"{__package__.rpartition('.')[0]}.mapping").Mapping(name, section, config)
        return made

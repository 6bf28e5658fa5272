"""Says what the mapper asks of formats and mappings, and makes those of a section."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from ..config.attaching.sources import Attached
from ..config.settings import Config
from .records import Mapped, OriginRecord


class FormatLike(Protocol):
    """Makes objects of values; see `formats`."""

    @property
    def is_waiting(self) -> bool:
        """Whether a schema cannot be fetched now."""
        ...

    async def start(self) -> None:
        """Ask whether what it needs is there."""
        ...

    def decode_now(self, record: OriginRecord) -> list[Any] | None:
        """Return the objects in a record; None where something has to be fetched first."""
        ...

    async def decode(self, record: OriginRecord) -> list[Any]:
        """Return the objects in a record, and fetch what is needed for it."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


class MappingLike(Protocol):
    """Makes records of ours of one that is not; see `mapping`."""

    def map(self, record: OriginRecord, decoded: Sequence[Any]) -> list[Mapped]:
        """Return the records that are made of it; none where it is passed over."""
        ...

    def time_of(self, record: OriginRecord, decoded: Sequence[Any]) -> int:
        """Return its event time in milliseconds; Kafka's timestamp where it says none."""
        ...


class Parts:
    """Makes the format and the mapping of a section."""

    def new_format(self, section: Attached, config: Config) -> FormatLike:
        """Return the format; raises ConfigError where a package or the registry is missing."""
        made: FormatLike = import_module(f"{__package__}.formats.making").new_format(section.format, config.kafka)
        return made

    def new_mapping(self, name: str, section: Attached, config: Config) -> MappingLike:
        """Return the mapping."""
        made: MappingLike = import_module(f"{__package__}.mapping").Mapping(name, section, config)
        return made

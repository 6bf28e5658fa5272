"""Units of sources and labels that are mapped together, by time.

Labels go with the sources of their models: sections whose models meet are one unit, and so are sections that read the
same topic, because the records that are made of an origin record are numbered over all of them. So the units are the
connected components of both; a unit is mapped whole by one process.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from ...config.attachment import labels_of, roles_of
from ...config.settings import Config
from ...config.sources import LabelsConfig, SourceConfig

Section = SourceConfig | LabelsConfig
"""What the configuration says of topics of others."""


@dataclass(frozen=True)
class Unit:
    """Sections that are mapped together.

    Attributes
    ----------
    sections
        By name, in the order of the names: which of the records made of an origin record is which depends on that.
    """

    sections: dict[str, Section]

    @property
    def name(self) -> str:
        """Name of the first section, which decides who maps the unit."""
        return next(iter(self.sections))

    @property
    def merge_wait_s(self) -> float:
        """Seconds to wait for a partition without records, the longest of all."""
        return max(one.merge_wait for one in self.sections.values() if isinstance(one, SourceConfig))

    @property
    def readers(self) -> dict[str, list[str]]:
        """Topics that are read, by the section that keeps their positions.

        A topic of several sections is read once, in the name of the first one.
        """
        seen: set[str] = set()
        found: dict[str, list[str]] = {}
        for name, section in self.sections.items():
            own = [topic for topic in section.topic if topic not in seen]
            seen.update(own)
            if own:
                found[name] = own
        return found

    def readers_of(self, topic: str) -> list[str]:
        """Return the names of the sections that map a topic's records."""
        return [name for name, section in self.sections.items() if topic in section.topic]

    def place(self, n_places: int) -> int:
        """Return which partition of the sources topic decides who maps the unit."""
        return zlib.crc32(self.name.encode()) % n_places


def units_of(config: Config) -> list[Unit]:
    """Return the units of a configuration.

    There are none where a worker reads the topic of its only source itself.
    """
    sections: dict[str, Section] = {**config.sources, **config.labels}
    if any(source.key == "direct" for source in config.sources.values()):
        return []
    together: list[set[str]] = [{name} for name in sections]
    for entry in config.models:
        roles = roles_of(entry, config.sources, config.models)
        late = labels_of(entry, config.labels, config.models)
        together.append({role.source for role in roles} | {name for name, _ in late})
    topics = {topic for section in sections.values() for topic in section.topic}
    together += [{name for name, section in sections.items() if topic in section.topic} for topic in topics]
    found = (sorted(names) for names in _components(together) if any(name in config.sources for name in names))
    return sorted(
        (Unit({name: sections[name] for name in names}) for names in found),
        key=lambda unit: unit.name,
    )


def _components(together: list[set[str]]) -> list[set[str]]:
    found: list[set[str]] = []
    for names in together:
        apart = [one for one in found if not one & names]
        found = [*apart, set().union(names, *(one for one in found if one & names))]
    return [names for names in found if names]


def positions_group(group: str, section: str) -> str:
    """Return the consumer group that keeps the positions of a section."""
    return f"{group}-map-{section}"


def claims_group(group: str) -> str:
    """Return the consumer group that decides which process maps which unit."""
    return f"{group}-mappers"

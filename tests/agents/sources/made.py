"""Configurations and records for tests of sources."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.sources.formats.base import Decoded, JsonFormat
from attributary_agents.sources.mapping import Mapping
from attributary_agents.sources.records import Mapped, OriginRecord

REGRESSOR = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}
NOW_MS = 1_700_000_000_000


def config_of(
    source: dict[str, Any],
    models: Sequence[str] | dict[str, Any] = ("bikes",),
    labels: dict[str, Any] | None = None,
    **sections: Any,
) -> Config:
    """A configuration with the source `rentals`, models by name, and labels `counts`, where there are any."""
    named = models if isinstance(models, dict) else dict.fromkeys(models, REGRESSOR)
    late = {} if labels is None else {"labels": {"counts": labels}}
    return parse_config({"sources": {"rentals": {"topic": "rentals", **source}}, "models": named, **late, **sections})


def mapping_of(source: dict[str, Any], *args: Any, **kwargs: Any) -> Mapping:
    """The mapping of that source; where it has neither y nor labels, y is `count`."""
    late = kwargs.get("labels") or (len(args) > 1 and args[1])
    config = config_of(source if "y" in source or late else {"y": "count", **source}, *args, **kwargs)
    return Mapping("rentals", config.sources["rentals"], config)


def record_of(value: Any, **given: Any) -> OriginRecord:
    """A record at offset 7 of partition 1 of `rentals`, its value in JSON."""
    raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return OriginRecord(**{"topic": "rentals", "partition": 1, "offset": 7, "timestamp_ms": NOW_MS, "key": b"s1",
                           "value": raw, **given})  # fmt: skip


def mapped(mapping: Mapping, value: Any, **given: Any) -> list[Mapped]:
    """What becomes of a record with this value in JSON."""
    record = record_of(value, **given)
    return mapping.map(record, JsonFormat().decode_now(record))


def mapped_object(mapping: Mapping, *decoded: Decoded, **given: Any) -> list[Mapped]:
    """What becomes of a record that a format has decoded to these objects."""
    return mapping.map(record_of(b"not read", **given), decoded)

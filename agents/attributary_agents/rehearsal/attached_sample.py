"""Sampling and trial of foreign topics' sections, with rows for models.

The rows are for a rehearsal.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path

from ..config.settings import Config
from ..config.sources import LabelsConfig, SourceConfig
from ..errors import AttributaryError
from ..kafka.clients import client_log_muted
from ..kafka.observations import encode_value
from ..kafka.topics.origins import find_origin_topics, origin_topics
from ..sources.formats.making import new_format
from ..sources.records import OriginRecord
from ..sources.samples import Sample, decoded_sample, read_lines, read_newest
from .attached import Tried, Waiting, judge_waiting, rows_of, try_section

MOST_REHEARSED = 200
"""Rows of a model that are taken all the way; what records become is counted in all of the sample."""


@dataclass
class Attached:
    """Results of all sections on sampled records.

    Attributes
    ----------
    tried
        By `sources.NAME` or `labels.NAME`.
    waiting
        By the name of a section of labels.
    values
        By entry below `models`, the values of the records that a rehearsal takes.
    """

    tried: dict[str, Tried] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    values: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Expressions that find nothing, and sections that map no record."""
        found = [fault for each in self.tried.values() for fault in each.faults]
        return found + [
            f"{key}: none of {each.n_records} records is mapped"
            for key, each in self.tried.items()
            if not each.works and not each.faults
        ]


def try_topics(config: Config, n: int) -> Attached:
    """Try all sections on the newest `n` records of their topics.

    Raises
    ------
    AttributaryError
        A topic is not there, or the brokers or a schema registry cannot be reached.
    """
    partitions = find_origin_topics(config.kafka, origin_topics(config))

    async def read(section: SourceConfig | LabelsConfig) -> list[OriginRecord]:
        return await read_newest(config.kafka, {topic: partitions[topic] for topic in section.topic}, n)

    with client_log_muted():
        records = {key: asyncio.run(read(section)) for key, section in _sections(config).items()}
    return _tried(config, {key: (", ".join(_sections(config)[key].topic), found) for key, found in records.items()})


def try_file(config: Config, name: str | None, path: Path, n: int) -> Attached:
    """Try a section on the first lines of a file, each a record's value.

    Parameters
    ----------
    name
        Of the section; None where there is one.
    """
    sections = _sections(config)
    keys = [key for key in sections if name is None or name in (key, key.partition(".")[2])]
    if len(keys) != 1:
        names = ", ".join(key.partition(".")[2] for key in sections)
        raise AttributaryError(
            f"whose records are in {path}? Name one with --source: {names}"
            if name is None
            else f"--source: expected one of {names}, got {name!r}"
        )
    return _tried(config, {keys[0]: (str(path), read_lines(path, n, int(time.time() * 1000)))})


def _sections(config: Config) -> dict[str, SourceConfig | LabelsConfig]:
    sources = {f"sources.{name}": section for name, section in config.sources.items()}
    return {**sources, **{f"labels.{name}": section for name, section in config.labels.items()}}


def _tried(config: Config, records: dict[str, tuple[str, list[OriginRecord]]]) -> Attached:
    found = Attached()
    for key, (where, of) in records.items():
        section = _sections(config)[key]
        sample = asyncio.run(_decoded(config, section, where, of))
        found.tried[key] = try_section(key.partition(".")[2], section, config, sample)
    for name in config.labels:
        if f"labels.{name}" in found.tried and any(key.startswith("sources.") for key in found.tried):
            found.waiting[name] = judge_waiting(name, config, found.tried)
    found.values = {
        entry: [encode_value(row) for row in rows[-MOST_REHEARSED:]]
        for entry, rows in rows_of(found.tried, config).items()
    }
    return found


async def _decoded(
    config: Config, section: SourceConfig | LabelsConfig, where: str, records: list[OriginRecord]
) -> Sample:
    format_ = new_format(section.format, config.kafka)
    try:
        await format_.start()
        return await decoded_sample(where, records, format_)
    finally:
        await format_.close()


def whole_observations(config: Config) -> Config:
    """Return a configuration whose observations contain their labels.

    It is for a rehearsal of rows that are joined already.

    The label of a mirror is the logged prediction.
    """
    as_labelled = {"mode": "labelled"}
    models = {
        entry: model.model_copy(update=as_labelled if model.mode == "mirror" else None)
        for entry, model in config.models.items()
    }
    for model in models.values():
        model.take_join(None)
    return config.model_copy(update={"models": models, "sources": {}, "labels": {}})

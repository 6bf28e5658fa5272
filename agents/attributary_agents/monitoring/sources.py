"""Metrics of the sources that this process maps."""

from __future__ import annotations

from attributary_explainers.monitor.families import Add

from ..sources.mappers.board import OUTCOMES, SourcesBoard

_SOURCE = ("source",)

SOURCE_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "source_records_total": (
        "Records of the source since its mapping began here, by what became of them",
        ("source", "outcome"),
    ),
    "source_lag_records": ("Offsets of the source's topic that are not mapped yet", ("source", "topic", "partition")),
    "source_time_lag_seconds": ("Age of the record mapped last, by its own time; 0 where all is mapped", _SOURCE),
    "source_waiting_registry": ("1 while a schema cannot be fetched and the source waits for it", _SOURCE),
}
"""Part of the catalogue: name without the prefix to help text and labels."""


def add_sources(board: SourcesBoard, add: Add) -> None:
    """Add the series of the sources that are mapped here."""
    for name, section in board.sections.copy().items():
        for outcome in OUTCOMES:
            add("source_records_total", (name, outcome), float(section.counts[outcome]))
        for (topic, partition), lag in section.lags.copy().items():
            add("source_lag_records", (name, topic, str(partition)), float(lag))
        add("source_time_lag_seconds", (name,), section.time_lag_s)
        add("source_waiting_registry", (name,), float(section.is_waiting()))

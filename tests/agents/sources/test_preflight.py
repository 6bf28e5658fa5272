"""Which topics of others have to be there when a worker starts: those that it, or a mapper inside of it, reads."""

from __future__ import annotations

from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.sources.mappers import preflight


def asked(monkeypatch: pytest.MonkeyPatch, *, mapper: bool, **source: Any) -> list[str]:
    """The topics that brokers are asked for."""
    found: list[str] = []

    def find(_kafka: Any, topics: dict[str, str]) -> dict[str, int]:
        found.extend(topics)
        return {"rentals": 4}

    monkeypatch.setattr(preflight, "find_origin_topics", find)
    preflight.check_read_topics(
        parse_config(
            {
                "sources": {"s": {"topic": "rentals", "y": "count", **source}},
                "models": {"m": {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}},
                "run": {"mapper": mapper},
            }
        )
    )
    return found


def test_a_worker_that_maps_needs_its_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, mapper=True) == ["rentals"]


def test_a_worker_that_maps_nothing_asks_for_no_topics_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, mapper=False) == []


def test_a_worker_that_reads_a_topic_directly_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, mapper=False, key="direct", model="{$key}") == ["rentals"]

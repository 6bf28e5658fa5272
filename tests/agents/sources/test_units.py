"""Which sections are mapped together: those whose models meet, and those that read one topic."""

from __future__ import annotations

from typing import Any

from attributary_agents.config.reading import parse_config
from attributary_agents.sources.mappers.units import Unit, units_of

MODEL = {"model": {"class": "river.tree.HoeffdingTreeRegressor"}}


def units(sources: dict[str, Any], labels: dict[str, Any] | None = None, models: str = "a b c") -> list[list[str]]:
    config = parse_config(
        {
            "models": dict.fromkeys(models.split(), MODEL),
            "sources": {name: {"id": "id", **one} for name, one in sources.items()},
            "labels": {name: {"id": "id", "y": "y", "ttl": "1h", **one} for name, one in (labels or {}).items()},
        }
    )
    return [list(unit.sections) for unit in units_of(config)]


def source(topic: str, model: str, **more: str) -> dict[str, str]:
    return {"topic": topic, "model": model, **more}


def test_sources_of_other_models_and_topics_are_mapped_apart() -> None:
    assert units({"s": source("t", "a", y="y"), "r": source("u", "b", y="y")}) == [["r"], ["s"]]


def test_labels_go_with_the_source_of_their_model() -> None:
    found = units({"s": source("t", "a"), "r": source("u", "b", y="y")}, {"l": source("v", "a")})
    assert found == [["l", "s"], ["r"]]


def test_labels_of_several_sources_join_them() -> None:
    found = units(
        {"s": source("t", "m1"), "r": source("u", "m2"), "q": source("w", "n", y="y")},
        {"l": source("v", "m{id}")},
        "m1 m2 n",
    )
    assert found == [["l", "r", "s"], ["q"]]


def test_sections_that_read_one_topic_are_one_unit_that_reads_it_once() -> None:
    sections = {"s": source("t", "a", y="y"), "r": source("t", "b", y="y")}
    assert units(sections) == [["r", "s"]]
    config = parse_config({"models": {"a": MODEL, "b": MODEL}, "sources": sections})
    (unit,) = units_of(config)
    assert unit.readers == {"r": ["t"]}
    assert unit.readers_of("t") == ["r", "s"]


def test_what_a_worker_reads_itself_is_not_mapped() -> None:
    assert units({"s": {**source("t", "{$key}", y="y"), "key": "direct"}}) == []


def test_who_maps_a_unit_is_decided_by_its_first_name_alone() -> None:
    one, other = Unit({"rentals": None}), Unit({"rentals": None, "returns": None})  # type: ignore[dict-item]
    assert one.place(8) == other.place(8)
    assert 0 <= one.place(8) < 8

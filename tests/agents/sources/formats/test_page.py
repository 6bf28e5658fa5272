"""The page about formats: each format has a row, and the reasons that it names are those that records can have."""

from __future__ import annotations

import re
from pathlib import Path

from attributary_agents.config.registry import RegistryConfig
from attributary_agents.config.sources import FORMATS
from attributary_topics import REASONS

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "attach" / "formats.md").read_text()
OF_FORMATS = {
    "not_framed",
    "unknown_schema",
    "wrong_schema",
    "invalid_avro",
    "invalid_protobuf",
    "not_cloudevent",
    "not_inference",
    "wrong_tensor",
}


def test_each_format_has_a_row() -> None:
    table = PAGE.partition("| `format` |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w-]+)`", table, flags=re.MULTILINE)
    assert tuple(rows) == FORMATS


def test_the_reasons_are_those_that_there_are() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE))
    assert set(REASONS) >= OF_FORMATS
    assert named >= OF_FORMATS


def test_each_key_of_the_registry_is_shown() -> None:
    section = PAGE.partition("schema_registry:")[2].partition("```")[0]
    assert [key for key in RegistryConfig.model_fields if not re.search(rf"\b{key}\b", section)] == []

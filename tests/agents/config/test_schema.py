"""The JSON Schema of the configuration: what editors and `attributary config schema` show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.config.settings import Config


def _schema_leaves(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every setting of the schema that is no section, with its path."""
    for name, setting in node.get("properties", {}).items():
        branches = [setting, setting.get("additionalProperties"), setting.get("items"), *setting.get("anyOf", [])]
        found = [branch for branch in branches if isinstance(branch, dict)]
        references = [
            inner["$ref"] for branch in found for inner in (branch, *branch.get("anyOf", [])) if "$ref" in inner
        ]
        references += [b["items"]["$ref"] for b in found if "$ref" in b.get("items", {})]
        if not references:
            yield f"{path}{name}", setting
        for reference in dict.fromkeys(references):
            section = schema["$defs"][reference.removeprefix("#/$defs/")]
            yield from _schema_leaves(schema, section, f"{path}{name}.")


def test_the_schema_describes_every_setting() -> None:
    schema = Config.model_json_schema()
    assert json.loads(json.dumps(schema)) == schema
    assert schema["required"] == ["models"]
    leaves = dict(_schema_leaves(schema, schema, ""))

    assert {
        "kafka.brokers",
        "models.model.class",
        "models.explainers.pfi.n_samples",
        "models.explainers.pdp.every",
        "models.change.window",
    } <= set(leaves)
    assert [path for path, setting in leaves.items() if not setting.get("description")] == []


def test_the_schema_allows_no_unknown_keys() -> None:
    schema = Config.model_json_schema()
    assert all(section["additionalProperties"] is False for section in (schema, *schema["$defs"].values()))


SECTIONS = {
    "defaults": {"alpha": 0.01, "change": {"window": 50}},
    "models": {"m": {"factory": "a:b", "change": {"margin": 0.5}}},
}


@pytest.mark.parametrize("data", [yaml.safe_load(EXAMPLE), SECTIONS], ids=["the example", "defaults"])
def test_the_configuration_in_force_parses_again(data: dict[str, Any]) -> None:
    config = parse_config(data)
    assert parse_config(json.loads(json.dumps(config.model_dump(mode="json", by_alias=True)))) == config

"""The pages about attaching: commands print what they show, configurations load, records become what is said."""

from __future__ import annotations

import json
import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.formats.factory import new_format
from attributary_agents.sources.mapping import Mapping
from attributary_agents.sources.records import Mapped, OriginRecord

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "attach"
PAGE = FOLDER / "README.md"

_FILE = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"^```console\n\$ attributary (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_JSON = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def files(page: str) -> dict[str, str]:
    """The files that a page shows, by their names."""
    return dict(_FILE.findall((FOLDER / page).read_text()))


def without_measurements(text: str) -> str:
    """Times, and sizes that depend on the versions of what is pickled."""
    return re.sub(r"\d[\d.e+]* (ms|µs|kB)\b", r"# \1", text)


def test_the_page_shows_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    monkeypatch.chdir(tmp_path)
    for name, content in files("README.md").items():
        Path(name).write_text(content)
    runpy.run_path("make_rentals.py")
    commands = [command for command, _ in _RUN.findall(page)]
    done = {command: CliRunner().invoke(cli, command.split()) for command in commands}
    printed = {command: re.sub(r"of /\S+/", "of ", one.output) for command, one in done.items()}
    assert [one.exit_code for one in done.values()] == [2, 0, 0, 2]

    made = _RUN.sub(lambda block: f"```console\n$ attributary {block[1]}\n{printed[block[1]]}```", page)
    if os.environ.get("UPDATE_DOCS") and without_measurements(made) != without_measurements(page):
        assert not os.environ.get("CI"), "UPDATE_DOCS under CI would compare nothing"
        PAGE.write_text(made)
        return
    assert without_measurements(made) == without_measurements(page)
    suggested, saved = yaml.safe_load(done[commands[1]].stdout), yaml.safe_load(files("README.md")["attributary.yaml"])
    assert (suggested["sources"], suggested["models"]) == (saved["sources"], saved["models"])


CONFIGURATIONS = [
    (page.name, name) for page in sorted(FOLDER.glob("*.md")) for name in files(page.name) if name.endswith(".yaml")
]


@pytest.mark.parametrize(("page", "name"), CONFIGURATIONS)
def test_each_configuration_loads(page: str, name: str) -> None:
    config = parse_config(yaml.safe_load(files(page)[name]))
    for source, section in config.sources.items():
        Mapping(source, section, config)


def becomes(page: str, section: str, value: dict[str, Any]) -> list[Mapped]:
    """What a decoded record becomes by a section of the configuration that a page shows first."""
    config = parse_config(yaml.safe_load(next(iter(files(page).values()))))
    kind, _, name = section.partition(".")
    mapping = Mapping(name, getattr(config, kind)[name], config)
    record = OriginRecord("t", 0, 0, 1_790_000_000_000, None, b"", ())
    return mapping.map(record, [Decoded(value)])


def shown(page: str) -> list[Any]:
    """The JSON that a page shows."""
    return [json.loads(block) for block in _JSON.findall((FOLDER / page).read_text())]


@pytest.mark.parametrize(
    ("page", "section", "value", "result", "model_id"),
    [
        ("bike-sharing.md", "sources.rentals", 0, 2, "bikes"),
        ("bike-sharing.md", "labels.counts", 1, 3, "bikes"),
        ("debezium.md", "sources.applications", 0, 1, "bank"),
        ("debezium.md", "labels.outcomes", 2, 3, "bank"),
    ],
)
def test_a_record_becomes_what_the_page_shows(page: str, section: str, value: int, result: int, model_id: str) -> None:
    blocks = shown(page)
    (one,) = becomes(page, section, blocks[value])
    assert (one.model_id, one.fields) == (model_id, blocks[result])


def test_the_source_passes_the_update_over_and_the_labels_the_new_row() -> None:
    new, _, update, _ = shown("debezium.md")
    assert becomes("debezium.md", "sources.applications", update) == []
    assert becomes("debezium.md", "labels.outcomes", new) == []


def test_each_row_of_a_request_becomes_what_the_page_shows() -> None:
    request, *rows = shown("inference-logs.md")
    config = parse_config(yaml.safe_load(files("inference-logs.md")["inference-logs.yaml"]))
    headers = {
        "ce_specversion": "1.0",
        "ce_type": "org.kubeflow.serving.inference.request",
        "ce_id": "e58f1edd",
        "ce_time": "2026-05-28T20:26:40Z",
        "ce_inferenceservicename": "fraud-a",
        "content-type": "application/json",
    }
    encoded = tuple((name, text.encode()) for name, text in headers.items())
    record = OriginRecord("t", 0, 0, 1_790_000_000_000, None, json.dumps(request).encode(), encoded)
    decoded = new_format("open-inference", config.kafka).decode_now(record)
    assert decoded is not None
    found = Mapping("fraud", config.sources["fraud"], config).map(record, decoded)
    assert [one.model_id for one in found] == ["fraud-a", "fraud-a"]
    assert [one.fields for one in found] == rows


def test_the_configuration_of_a_topic_that_is_read_directly_loads() -> None:
    config = parse_config(yaml.safe_load(files("direct.md")["direct.yaml"]))
    assert config.kafka.topics.observations == "rentals"

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
    (page, name) for page in ("README.md", "sources.md") for name in files(page) if name.endswith(".yaml")
]


@pytest.mark.parametrize(("page", "name"), CONFIGURATIONS)
def test_each_configuration_loads(page: str, name: str) -> None:
    config = parse_config(yaml.safe_load(files(page)[name]))
    for source, section in config.sources.items():
        Mapping(source, section, config)


def becomes(file: str, section: str, value: dict[str, Any]) -> list[Mapped]:
    """What a decoded record becomes by a section of a configuration of the page."""
    config = parse_config(yaml.safe_load(files("sources.md")[file]))
    kind, _, name = section.partition(".")
    mapping = Mapping(name, getattr(config, kind)[name], config)
    return mapping.map(OriginRecord("t", 0, 0, 1_790_000_000_000, None, b"", ()), [Decoded(value)])


@pytest.mark.parametrize(
    ("nth", "file", "section", "model_id"),
    [
        (0, "rentals.yaml", "sources.rentals", "bikes"),
        (1, "rentals.yaml", "labels.counts", "bikes"),
        (2, "applications.yaml", "sources.applications", "bank"),
        (3, "applications.yaml", "labels.outcomes", "bank"),
    ],
)
def test_a_record_becomes_what_the_page_shows(nth: int, file: str, section: str, model_id: str) -> None:
    blocks = [json.loads(block) for block in _JSON.findall((FOLDER / "sources.md").read_text())]
    value, shown = blocks[2 * nth : 2 * nth + 2]
    (one,) = becomes(file, section, value)
    assert (one.model_id, one.fields) == (model_id, shown)


def test_the_source_passes_the_update_over_and_the_labels_the_new_row() -> None:
    blocks = [json.loads(block) for block in _JSON.findall((FOLDER / "sources.md").read_text())]
    assert becomes("applications.yaml", "sources.applications", blocks[6]) == []
    assert becomes("applications.yaml", "labels.outcomes", blocks[4]) == []


def test_the_configuration_of_a_topic_that_is_read_directly_loads() -> None:
    config = parse_config(yaml.safe_load(files("direct.md")["direct.yaml"]))
    assert config.kafka.topics.observations == "rentals"

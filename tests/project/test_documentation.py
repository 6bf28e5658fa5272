"""What the documentation says is so: examples run, and every setting, metric, topic and reason is written down."""

import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import attributary_agents
import attributary_explainers
import attributary_topics
from attributary_agents.cli.main import cli
from attributary_agents.config.reading import EXAMPLE, parse_config
from attributary_agents.errors import ConfigError
from attributary_agents.kafka.topics import topic_specs
from attributary_agents.monitoring.metrics import EXPORTED
from attributary_agents.serve.http.monitoring import SERVE_METRICS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def _modules_with_examples() -> Iterator[str]:
    for package in (attributary_explainers, attributary_topics, attributary_agents):
        (folder,) = package.__path__
        for path in sorted(Path(folder).rglob("*.py")):
            if re.search(r"^ *>>> ", path.read_text(), re.MULTILINE):
                yield ".".join(path.relative_to(Path(folder).parent).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("name", list(_modules_with_examples()))
def test_the_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_modules_with_examples_are_found_in_every_package() -> None:
    assert {name.split(".")[0] for name in _modules_with_examples()} >= {"attributary_explainers", "attributary_topics"}
    assert any(name.count(".") > 2 for name in _modules_with_examples()), "in packages within packages too"


@pytest.mark.parametrize("page", ["README.md", "docs/evaluation.md", "docs/known-values.md"])
def test_the_examples_in_the_text(page: str) -> None:
    result = doctest.testfile(str(ROOT / page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_the_readme_s_configuration_is_the_example_and_parses() -> None:
    assert EXAMPLE.strip() in README
    parse_config(yaml.safe_load(EXAMPLE))


def test_every_metric_is_documented() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    for name, (help_text, labels) in (EXPORTED | SERVE_METRICS).items():
        row = next((line for line in text.splitlines() if line.startswith(f"| `attributary_{name}`")), None)
        assert row is not None, name
        assert help_text in row
        for label in labels:
            assert f"`{label}`" in row


def test_every_topic_is_documented() -> None:
    config = parse_config(yaml.safe_load(EXAMPLE))
    text = (ROOT / "docs" / "topics.md").read_text()
    for spec in topic_specs(config):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{spec.name}` |"))
        settings = set(re.findall(r"`([\w.]+=\w[\w.]*)`", row))
        assert settings == {f"{name}={value}" for name, value in spec.settings.items()}, row


def test_every_dead_letter_reason_is_documented() -> None:
    text = (ROOT / "docs" / "topics.md").read_text()
    for reason, meaning in attributary_topics.REASONS.items():
        assert f"| `{reason}` | {meaning} |" in text


def test_the_configurations_in_the_text_are_read() -> None:
    read: set[str] = set()
    wrong: list[str] = []
    for path in (ROOT / "docs").rglob("*.md"):
        for block in re.findall(r"^```yaml[^\n]*\n(.*?)^```$", path.read_text(), flags=re.MULTILINE | re.DOTALL):
            if not re.search(r"^models:", block, flags=re.MULTILINE):
                continue
            raw = yaml.safe_load(re.sub(r"9f2c…|\bSHA256\b", "f" * 64, block))
            for own in raw["models"].values():  # of a part of a configuration the text says which model it is
                if not own.keys() & {"model", "factory"}:
                    own["model"] = {"class": "river.forest.ARFClassifier"}
            try:
                parse_config(raw)
            except ConfigError as error:
                wrong.append(f"{path.relative_to(ROOT)}: {error}\n{block}")
            read.add(path.name)
    assert wrong == []
    assert read >= {"mlflow.md", "served.md", "models.md", "in-a-worker.md", "anomalies.md", "delivery.md"}


def test_the_readme_counts_what_there_is() -> None:
    rules = (ROOT / "deploy/prometheus/rules/attributary.rules.yml").read_text()
    alerts = re.findall(r"^ *- alert: ", rules, flags=re.MULTILINE)
    assert f"recording rules and {len(alerts)} alerts," in README
    words = dict(enumerate(("six", "seven", "eight", "nine", "ten", "eleven", "twelve"), start=6))
    assert f"{words[len(attributary_explainers.LOSS_NAMES)]} by name, River's metrics" in README
    assert f"three routes, {words[len(attributary_explainers.DETECTOR_NAMES)]} detectors" in README


def test_every_command_in_the_readme_exists() -> None:
    known = set(cli.commands)
    for command in re.findall(r"^(?:\$ )?attributary ([a-z-]+)", README, flags=re.MULTILINE):
        assert command in known


def test_every_make_target_in_the_documents_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    documents = [README, *(path.read_text() for path in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])]
    for target in {target for text in documents for target in re.findall(r"\bmake ([a-z][a-z0-9-]*)", text)}:
        if target in {"sure", "it", "them"}:
            continue
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_help_lists_every_command() -> None:
    shown = CliRunner().invoke(cli, ["--help"]).output
    for name in cli.commands:
        assert re.search(rf"^  {name} ", shown, flags=re.MULTILINE)


def test_contributing_leads_to_what_is_there() -> None:
    rooms = {
        "E/": "explainers/attributary_explainers/",
        "A/": "agents/attributary_agents/",
        "T/": "topics/attributary_topics/",
    }
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## The tree")[2]
    paths = re.findall(r"`((?:[EAT]/|tests/|deploy/|docs/)[\w./-]*)`", text)
    assert len(paths) >= 50
    for path in paths:
        assert (ROOT / (rooms.get(path[:2], path[:2]) + path[2:])).exists(), path

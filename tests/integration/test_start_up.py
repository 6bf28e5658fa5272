"""Input that is wrong at start-up: one clear line that says what to do, and exit code 2."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kafka import create_topics

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.topics import topic_specs
from tests.integration.configs import created, logistic_config

pytestmark = pytest.mark.long

FIT = {"cleanup.policy": "compact", "max.message.bytes": "20000000"}


def _run(tmp_path: Path, config: dict[str, Any] | str, *options: str) -> tuple[int, str, str]:
    path = tmp_path / "config.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
    argv = [sys.executable, "-m", "attributary_agents.cli", "run", "--config", str(path), *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def _is_one_line_with(result: tuple[int, str, str], *parts: str) -> None:
    code, stdout, stderr = result
    assert code == 2, stderr
    assert stdout == ""
    assert stderr.startswith("attributary: ")
    assert len(stderr.strip().splitlines()) == 1, stderr
    for part in parts:
        assert part in stderr


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("models: [", ("not YAML",)),
        ("- a list", ("expected a mapping",)),
        ("kafka: {brokers: ['localhost:1']}", ("models is missing",)),
        (
            "models: {credit: {model: {class: river.forest.ARFClassifier}, alhpa: 1}}",
            ("unknown key", "models.credit.alhpa"),
        ),
        ("models: {credit: {model: {class: river.forest.ARFClassifier}, alpha: 7}}", ("models.credit.alpha", "got 7")),
        ("models: {credit: {model: {class: river.forest.ARFClassifier}, loss: squared}}", ("models.credit", "brier")),
    ],
)
def test_a_wrong_configuration(config: str, parts: tuple[str, ...], tmp_path: Path) -> None:
    _is_one_line_with(_run(tmp_path, config), *parts)


def test_a_missing_configuration_file() -> None:
    argv = [sys.executable, "-m", "attributary_agents.cli", "run", "--config", "no/such.yaml"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    _is_one_line_with((done.returncode, done.stdout, done.stderr), "no/such.yaml", "config example")


def test_a_broker_that_does_not_answer_where_none_is_to_be_waited_for(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    _is_one_line_with(_run(tmp_path, logistic_config(address), "--no-wait"), address, "kafka.brokers")


@pytest.mark.embedded
class TestOnABroker:
    def test_topics_that_are_missing(self, embedded_broker: Broker, tmp_path: Path) -> None:
        raw = logistic_config(embedded_broker.bootstrap)
        names = [spec.name for spec in topic_specs(parse_config(raw)) if spec.is_needed]
        _is_one_line_with(_run(tmp_path, raw), "attributary topics create", *names)

    @pytest.mark.parametrize(
        ("which", "n", "said"),
        [
            ("observations", 2, ["2 partitions", "set kafka.partitions to 2"]),
            ("changelog", 1, ["1 partition", "--alter --topic", "--partitions 4"]),
            ("models", 3, ["3 partitions", "as many as {observations}", "--partitions 4"]),
        ],
    )
    def test_a_topic_with_other_partitions(
        self, which: str, n: int, said: list[str], embedded_broker: Broker, tmp_path: Path
    ) -> None:
        raw = logistic_config(embedded_broker.bootstrap, partitions=4)
        config = parse_config(raw)
        observations = config.kafka.topics.observations
        name = config.kafka.changelog if which == "changelog" else getattr(config.kafka.topics, which)
        names = [spec.name for spec in topic_specs(config)]
        create_topics(embedded_broker.bootstrap, dict.fromkeys(names, 4) | {name: n}, FIT)
        _is_one_line_with(_run(tmp_path, raw), name, *(part.format(observations=observations) for part in said))

    def test_topics_that_would_lose_states(self, embedded_broker: Broker, tmp_path: Path) -> None:
        raw = logistic_config(embedded_broker.bootstrap)
        config = parse_config(raw)
        small = {"cleanup.policy": "delete", "max.message.bytes": "900000"}
        create_topics(embedded_broker.bootstrap, {spec.name: 1 for spec in topic_specs(config)}, small)
        changelog, dead_letters = config.kafka.changelog, config.kafka.topics.dead_letters
        result = _run(tmp_path, raw)
        _is_one_line_with(result, f"{changelog} is not compacted", f"{changelog} takes records of 900000 bytes")
        _is_one_line_with(result, f"{dead_letters} takes records of 900000 bytes", "kafka.max_record_bytes")

    def test_a_model_that_cannot_be_made(self, embedded_broker: Broker, tmp_path: Path) -> None:
        raw, _ = created(embedded_broker)
        raw["models"]["credit"]["model"] = {"class": "river.forest.NoSuchForest"}
        _is_one_line_with(_run(tmp_path, raw), "river.forest.NoSuchForest")

    def test_a_web_port_that_is_taken(self, embedded_broker: Broker, tmp_path: Path) -> None:
        raw, _ = created(embedded_broker)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            raw["web"] = {"port": taken.getsockname()[1]}
            _is_one_line_with(_run(tmp_path, raw), "web.port", str(raw["web"]["port"]))

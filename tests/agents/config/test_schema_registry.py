"""kafka.schema_registry: what is accepted, what each fault says, and that its password is in nothing that is said."""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.secure_kafka import CANARY

from attributary_agents.cli.main import cli
from attributary_agents.config.environment import forget_secrets
from attributary_agents.config.reading import parse_config
from attributary_agents.config.secrets import MASK
from attributary_agents.errors import ConfigError

MODELS = {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
URL = "https://registry.example.org:8081"


def with_registry(**registry: Any) -> dict[str, Any]:
    return {"models": MODELS, "kafka": {"schema_registry": registry}}


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(data)
    said = "".join(traceback.format_exception(caught.value))
    assert CANARY not in said
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_the_section_there_is_none() -> None:
    assert parse_config({"models": MODELS}).kafka.schema_registry is None


def test_a_registry_with_a_user(tmp_path: Path) -> None:
    registry = parse_config(with_registry(url=f"{URL}/", username="u", password=CANARY)).kafka.schema_registry
    assert registry is not None
    assert (registry.url, registry.username, registry.read_password()) == (URL, "u", CANARY)
    file = tmp_path / "password"
    registry = parse_config(with_registry(url=URL, username="u", password_file=str(file))).kafka.schema_registry
    assert registry is not None
    with pytest.raises(ConfigError, match=r"^kafka\.schema_registry\.password_file: cannot read .*: No such file"):
        registry.read_password()
    file.write_text("from a file\n")
    assert registry.read_password() == "from a file"


@pytest.mark.parametrize(
    ("registry", "said"),
    [
        ({}, "kafka.schema_registry.url"),
        ({"url": "registry:8081"}, "expected http://HOST:PORT or https://HOST:PORT"),
        ({"url": "http://"}, "expected http://HOST:PORT or https://HOST:PORT"),
        ({"url": f"http://u:{CANARY}@registry:8081"}, "url names a user: give username and password"),
        ({"url": URL, "username": "u"}, "username and password (or password_file) belong together"),
        ({"url": URL, "password": CANARY}, "username and password (or password_file) belong together"),
        (
            {"url": URL, "username": "u", "password": CANARY, "password_file": "p"},
            "password and password_file are both",
        ),
        ({"url": URL, "username": "u", "password": MASK}, "is what `attributary config show` prints"),
        ({"url": "http://registry:8081", "ca_file": "ca.pem"}, "ca_file is used with https only"),
        ({"url": URL, "pasword": "x"}, "pasword"),
    ],
)
def test_what_is_wrong_is_said_without_the_password(registry: dict[str, Any], said: str) -> None:
    assert said in refusal(with_registry(**registry))


def test_the_environment_may_give_it_and_its_password_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__SCHEMA_REGISTRY__URL", URL)
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__SCHEMA_REGISTRY__USERNAME", "u")
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__SCHEMA_REGISTRY__PASSWORD", CANARY)
    registry = parse_config({"models": MODELS}).kafka.schema_registry
    assert registry is not None
    assert (registry.url, registry.read_password()) == (URL, CANARY)
    forget_secrets()
    assert "ATTRIBUTARY_KAFKA__SCHEMA_REGISTRY__PASSWORD" not in os.environ
    assert os.environ["ATTRIBUTARY_KAFKA__SCHEMA_REGISTRY__USERNAME"] == "u"


def test_no_command_prints_the_password(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(with_registry(url=URL, username="u", password=CANARY)))
    shown = CliRunner().invoke(cli, ["config", "show", "--config", str(path)])
    assert shown.exit_code == 0
    assert CANARY not in shown.output
    assert MASK in shown.output
    config = parse_config(with_registry(url=URL, username="u", password=CANARY))
    assert CANARY not in repr(config)
    assert CANARY not in json.dumps(config.model_dump(mode="json"))


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_a_source_in_avro_or_protobuf_needs_one(kind: str) -> None:
    source = {"topic": "applications", "format": kind, "y": "subscribed"}
    data = {"models": MODELS, "sources": {"applications": source}}
    assert refusal(data).endswith(f"sources.applications: format {kind} needs kafka.schema_registry.url")
    assert parse_config({**with_registry(url=URL), "sources": {"applications": source}}).sources

"""Which formats there are, and what is said where something is missing for one."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import KafkaConfig
from attributary_agents.config.sources import FORMATS
from attributary_agents.errors import ConfigError
from attributary_agents.sources.formats import factory
from attributary_agents.sources.formats.factory import new_format
from tests.agents.sources.formats.fake_registry import MODELS, kafka_config

WITH_REGISTRY = kafka_config("http://registry:8081")


def refusal(name: str, config: KafkaConfig) -> str:
    with pytest.raises(ConfigError) as caught:
        new_format(name, config)
    return str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_there(name: str) -> None:
    assert not new_format(name, WITH_REGISTRY).is_waiting


def test_what_is_no_format_is_refused() -> None:
    assert refusal("xml", WITH_REGISTRY) == (
        "format 'xml': expected one of json, avro, protobuf, cloudevents, open-inference"
    )


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_a_registry_is_needed(name: str) -> None:
    assert refusal(name, parse_config({"models": MODELS}).kafka) == f"format {name} needs kafka.schema_registry.url"


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [
        ("avro", "fastavro", "fastavro"),
        ("avro", "httpx", "httpx"),
        ("protobuf", "google.protobuf", "protobuf"),
        ("protobuf", "grpc_tools", "grpcio-tools"),
        ("protobuf", "stamina", "stamina"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = factory.find_spec
    monkeypatch.setattr(factory, "find_spec", lambda one: None if one == module else found(one))
    assert refusal(name, WITH_REGISTRY) == f"format {name} needs {package}: pip install 'attributary[{name}]'"


def test_a_package_within_one_that_is_not_there_is_missing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(factory._NEEDED, "protobuf", {"no_such_package.inner": "protobuf"})
    assert refusal("protobuf", WITH_REGISTRY).startswith("format protobuf needs protobuf: ")


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_the_extra_installs_all_that_is_asked_for(name: str) -> None:
    assert _brought_by(name) - _brought_by("worker") == set(factory._NEEDED[name].values())


def _brought_by(extra: str) -> set[str]:
    requirements = map(Requirement, requires("attributary") or ())
    return {one.name for one in requirements if one.marker is not None and one.marker.evaluate({"extra": extra})}


@pytest.mark.long  # it starts a process
def test_other_formats_import_nothing_of_it() -> None:
    program = (
        "import sys; from attributary_agents.sources.formats.factory import new_format; "
        "from attributary_agents.config.settings import KafkaConfig; new_format('open-inference', KafkaConfig()); "
        "print(*sorted({'fastavro', 'httpx', 'google.protobuf', 'grpc_tools', 'stamina'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""

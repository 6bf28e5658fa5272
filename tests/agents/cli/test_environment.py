"""Settings from environment variables, as `attributary config show` prints what is in force."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError

CONFIG = """
models:
  Credit:
    model: {class: river.forest.ARFClassifier, params: {n_models: 10}}
    missing: {age: 0.0}
    bounds: {Age: [0, 10]}
"""


def in_force(folder: Path) -> Any:
    (folder / "attributary.yaml").write_text(CONFIG)
    result = CliRunner().invoke(cli, ["config", "show", "--json", "-c", str(folder / "attributary.yaml")])
    if result.exception is not None:
        raise result.exception
    return json.loads(result.output)


def at(data: Any, path: str) -> Any:
    for part in path.split("."):
        data = data[part]
    return data


VARIABLES = [
    ("KAFKA__BROKERS", "host:9092", "kafka.brokers", ["host:9092"]),
    ("KAFKA__BROKERS", "a:1, b:2", "kafka.brokers", ["a:1", "b:2"]),
    ("KAFKA__BROKERS", '["a:1", "b:2"]', "kafka.brokers", ["a:1", "b:2"]),
    ("KAFKA", '{"group": "blue"}', "kafka.group", "blue"),
    ("KAFKA__GROUP", "1234", "kafka.group", "1234"),
    ("CONTROL__ALLOWED", "", "control.allowed", []),
    ("CONTROL__ALLOWED", "river.,mine", "control.allowed", ["river.", "mine"]),
    ("MODELS__CREDIT__LEARN", "false", "models.Credit.learn", False),
    ("MODELS__CREDIT__LEARN", "no", "models.Credit.learn", False),
    ("MODELS__CREDIT__ALPHA", "1e-3", "models.Credit.alpha", 0.001),
    ("MODELS__CREDIT__VERSION", "2", "models.Credit.version", "2"),
    ("MODELS__CREDIT__QUALITY", "accuracy,f1", "models.Credit.quality", ["accuracy", "f1"]),
    ("MODELS__CREDIT__QUALITY", "null", "models.Credit.quality", None),
    ("MODELS__CREDIT__CHANGE", "null", "models.Credit.change", None),
    ("MODELS__CREDIT__CHANGE__IMPORTANCES", "pfi,sage", "models.Credit.change.importances", ["pfi", "sage"]),
    ("MODELS__CREDIT__EXPLAIN__BUDGET", "null", "models.Credit.explain.budget", None),
    ("MODELS__CREDIT__MISSING", "skip", "models.Credit.missing", "skip"),
    ("MODELS__CREDIT__MISSING", '{"age": 1.5}', "models.Credit.missing", {"age": 1.5}),
    ("MODELS__CREDIT__MODEL__PARAMS__N_MODELS", "3", "models.Credit.model.params.n_models", 3),
    ("MODELS__CREDIT__MODEL__PARAMS__NOTE", "plain text", "models.Credit.model.params.note", "plain text"),
    ("MODELS__CREDIT__BOUNDS__AGE", "0,120", "models.Credit.bounds.Age", [0, 120]),
    ("MODELS__CREDIT__BOUNDS__Income", "0,null", "models.Credit.bounds.Income", [0, None]),
    ("MODELS__CREDIT__GROUPS__rooms", "a,b", "models.Credit.groups.rooms", ["a", "b"]),
    ("MODELS__CREDIT__EXPLAINERS__SAGE__N_SAMPLES", "2", "models.Credit.explainers.sage.n_samples", 2),
    ("ARTEFACTS__DIRECTORY", "C:\\models", "artefacts.directory", "C:\\models"),
    ("LOG__LEVEL", "DEBUG", "log.level", "DEBUG"),
]


@pytest.mark.parametrize(("name", "text", "path", "value"), VARIABLES)
def test_a_variable_is_written_as_one_would(
    name: str, text: str, path: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ATTRIBUTARY_{name}", text)
    assert at(in_force(tmp_path), path) == value


# ruff: noqa: E501
WRONG = [
    ({"KAFAK__GROUP": "x"}, "unknown environment variable ATTRIBUTARY_KAFAK__GROUP: did you mean 'ATTRIBUTARY_KAFKA__GROUP'?"),
    ({"BROKERS": "x"}, "unknown environment variable ATTRIBUTARY_BROKERS: did you mean 'ATTRIBUTARY_KAFKA__BROKERS'?"),
    ({"KAFKA__BROKER": "x"}, "unknown key 'kafka.broker': did you mean 'brokers'?"),
    ({"KAFKA__PARTITIONS": "four"}, "kafka.partitions should be a valid integer, got 'four'"),
    ({"KAFKA": "x"}, "ATTRIBUTARY_KAFKA: expected JSON, or one variable for each key below it, such as ATTRIBUTARY_KAFKA__KEY"),
    ({"CHECKPOINT": "1", "CHECKPOINT__INTERVAL_S": "2"}, "what it belongs to is set as a whole by ATTRIBUTARY_CHECKPOINT"),
]  # fmt: skip


@pytest.mark.parametrize(("variables", "said"), WRONG)
def test_a_variable_that_is_wrong_is_named(
    variables: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in variables.items():
        monkeypatch.setenv(f"ATTRIBUTARY_{name}", text)
    with pytest.raises(AttributaryError) as caught:
        in_force(tmp_path)
    assert said in str(caught.value)


def test_a_section_as_a_whole_and_one_of_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTRIBUTARY_KAFKA", '{"group": "blue", "partitions": 3}')
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__PARTITIONS", "2")
    found = in_force(tmp_path)["kafka"]
    assert (found["group"], found["partitions"]) == ("blue", 2)

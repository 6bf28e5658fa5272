"""Commands where the configuration has a template."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.errors import AttributaryError
from attributary_agents.kafka import deployments as models_topic
from attributary_agents.kafka import topics as topic_admin
from attributary_agents.monitoring.series_limits import most_series
from attributary_explainers.monitor.series_limits import ShownModels

PAGE = Path(__file__).resolve().parents[3] / "docs" / "templates.md"


def page_config() -> dict[str, Any]:
    """The configuration that the page shows."""
    text = PAGE.read_text()
    found: dict[str, Any] = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    return found


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(page_config(), sort_keys=False))
    return str(path)


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli, list(arguments), catch_exceptions=False)


def test_the_page_s_configuration_is_what_the_page_says() -> None:
    config = parse_config(page_config())
    names = {model_id: config.finder.name_of(model_id) for model_id in ("store-1", "store-outlet-1", "store-7", "bank")}
    assert names == {"store-1": "store-*", "store-outlet-1": "store-outlet-*", "store-7": "store-7", "bank": None}
    assert (config.models["store-*"].max_models, config.models["store-*"].idle) == (20_000, 86_400)
    assert config.n_models_at_most == 40_001
    assert config.models["store-7"].learn is False


def test_a_template_is_rehearsed_with_an_id_that_it_matches(file: str, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["a,b,y", *(f"{n % 7},{n % 3},{n % 7 + n % 3}" for n in range(60))]) + "\n")
    checked = ("check", "-c", file, "--offline", "--json")
    said = json.loads(invoke(*checked, "--sample", str(data), "--model", "store-*").stdout)
    assert said["models"]["store-*"]["problem"] is None
    assert said["models"]["store-*"]["n_used"] > 20
    assert said["ok"] is True
    said = json.loads(invoke(*checked, "--sample", str(data), "--model", "store-5").stdout)
    assert said["models"]["store-5"]["n_used"] > 20
    assert set(json.loads(invoke(*checked).stdout)["models"]) == {"store-*", "store-outlet-*", "store-7"}
    with pytest.raises(AttributaryError, match=r"--model: expected one of store-\*"):
        invoke(*checked, "--model", "bank")


def test_commands_take_ids_and_say_that_a_template_is_none(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_admin, "check_topics", lambda *_: None)
    deploy = ("--version", "2", "--class", "river.linear_model.LinearRegression", "--dry-run", "-c", file)
    assert "can be deployed" in invoke("models", "deploy", "store-12", *deploy).stdout
    for command in (("deploy", "store-*", *deploy), ("reset", "store-*", "-c", file, "--yes")):
        with pytest.raises(AttributaryError) as caught:
            invoke("models", *command)
        assert str(caught.value) == (
            "'store-*' is a template, and stands for all ids that it matches: name one of them"
        )


def test_the_list_has_each_template_and_the_ids_that_have_a_deployment(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record(model_id: str) -> Any:
        value = json.dumps({"version": "2", "factory": "a:b"}).encode()
        return SimpleNamespace(topic="t", partition=1, offset=5, timestamp=0, key=model_id.encode(), value=value)

    async def read(_config: Any) -> dict[str, list[Any]]:
        return {model_id: [record(model_id)] for model_id in ("store-9", "store-7", "bank", "store-*")}

    monkeypatch.setattr(topic_admin, "check_topics", lambda *_: None)
    monkeypatch.setattr(models_topic, "read_deployments", read)
    rows = json.loads(invoke("models", "list", "-c", file, "--json").stdout)
    assert [(row["model_id"], row["deployed"], "fault" in row) for row in rows] == [
        ("store-*", None, True),
        ("store-outlet-*", None, False),
        ("store-7", "2", False),
        ("store-9", "2", False),
    ]


def test_a_template_counts_with_as_many_models_as_it_may_have_series() -> None:
    models = page_config()["models"]
    template = parse_config({"models": {"store-*": models["store-*"]}, "metrics": {"max_models": 30}})
    one = parse_config({"models": {"store-1": models["store-7"]}, "metrics": {"max_models": 30}})
    assert most_series(template)[1] == 30 * most_series(one)[1]


def test_models_with_ids_of_their_own_have_series_first() -> None:
    shown = ShownModels(2, 1000)
    of_template = {"a-1", "a-2", "a-3"}
    assert shown.choose(dict.fromkeys(["a-1", "a-2", "a-3"], 1), of_template) == {"a-1", "a-2"}
    assert shown.choose(dict.fromkeys(["a-1", "a-2", "a-3", "z"], 1), of_template) == {"z", "a-1"}

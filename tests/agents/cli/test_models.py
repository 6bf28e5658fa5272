"""`attributary models deploy`: what it takes, and that it refuses what a worker would; the topic is a list here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from attributary_agents.cli.main import cli
from attributary_agents.errors import AttributaryError, DeploymentError
from attributary_agents.kafka import deployments as models_topic
from attributary_agents.kafka import topics as topic_admin
from attributary_explainers import dump_model
from tests.agents.stand_ins import FACTORY, CountingClassifier

BAYES = "river.naive_bayes.GaussianNB"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any], int | None]]:
    found: list[tuple[str, dict[str, Any], int | None]] = []

    async def send(_config: Any, model_id: str, value: bytes, partition: int | None) -> list[tuple[int, int]]:
        found.append((model_id, json.loads(value), partition))
        return [(partition or 0, len(found) - 1)]

    monkeypatch.setattr(models_topic, "send_deployment", send)
    monkeypatch.setattr(topic_admin, "check_topics", lambda _config, _only: None)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {
        "models": {"credit": {"factory": FACTORY}},
        "control": {"allowed": ["river.", "tests.agents", FACTORY]},
        "artefacts": {"directory": str(tmp_path / "artefacts")},
    }
    (tmp_path / "artefacts").mkdir()
    (tmp_path / "artefacts/two.pkl").write_bytes(dump_model(CountingClassifier()))
    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def deploy(folder: Path, *arguments: str, model_id: str = "credit") -> Result:
    config = str(folder / "attributary.yaml")
    return CliRunner().invoke(cli, ["models", "deploy", model_id, "-c", config, *arguments], catch_exceptions=False)


def file(folder: Path, content: Any) -> str:
    path = folder / "two.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_a_file_is_sent_as_it_is(folder: Path, sent: list[Any]) -> None:
    value = {"version": "2", "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": BAYES}]}
    result = deploy(folder, file(folder, value), "--partition", "3")
    assert sent == [("credit", value, 3)]
    assert result.stdout == "version 2 of credit is deployed: attributary.models.v1[3]@0\n"


def test_the_version_may_be_named_beside_the_file(folder: Path, sent: list[Any]) -> None:
    deploy(folder, file(folder, {"version": "2", "model": {"class": BAYES}}), "--version", "3")
    deploy(folder, file(folder, {"model": {"class": BAYES}}), "--version", "3")
    assert [value for _, value, _ in sent] == [{"version": "3", "model": {"class": BAYES}}] * 2


def test_a_class_a_factory_and_an_artefact_by_options(folder: Path, sent: list[Any]) -> None:
    deploy(folder, "--version", "2", "--class", "river.tree.HoeffdingTreeClassifier", "--params", '{"grace_period": 9}')
    deploy(folder, "--version", "3", "--factory", FACTORY)
    deploy(folder, "--version", "4", "--artefact", "two.pkl")
    digest = hashlib.sha256((folder / "artefacts/two.pkl").read_bytes()).hexdigest()
    assert [value for _, value, _ in sent] == [
        {"version": "2", "model": {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 9}}},
        {"version": "3", "factory": FACTORY},
        {"version": "4", "artefact": "two.pkl", "sha256": digest},
    ]


def test_json_says_where_it_is(folder: Path, sent: list[Any]) -> None:
    said = json.loads(deploy(folder, "--version", "2", "--class", BAYES, "--json").stdout)
    assert said == {
        "model_id": "credit",
        "version": "2",
        "model": {"class": BAYES, "params": {}},
        "sent": True,
        "topic": "attributary.models.v1",
        "partition": 0,
        "offset": 0,
    }
    assert len(sent) == 1


def test_a_dry_run_checks_and_sends_nothing(folder: Path, sent: list[Any]) -> None:
    assert "can be deployed" in deploy(folder, "--version", "2", "--class", BAYES, "--dry-run").stdout
    with pytest.raises(DeploymentError, match="NoTree"):
        deploy(folder, "--version", "2", "--class", "river.tree.NoTree", "--dry-run")
    assert sent == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--version", "2"], "exactly one of FILE, --class, --factory, --artefact, --mlflow; got none"),
        (["--version", "2", "--class", BAYES, "--factory", FACTORY], "got --class and --factory"),
        (["--class", BAYES], "--version"),
        (["--version", "2", "--factory", FACTORY, "--params", '{"depth": 2}'], "has no parameter 'depth'"),
        (["--version", "2", "--class", BAYES, "--params", "{"], "--params: expected a JSON object"),
        (["--version", "2", "--class", BAYES, "--params", "[1]"], "model.params: expected an object"),
        (["--version", "", "--class", BAYES], "version: expected a text"),
        (["--version", "2", "--class", "os.system"], "control.allowed"),
        (["--version", "2", "--class", BAYES, "--params", '{"depth": 2}'], "has no parameter 'depth'"),
        (["next.yaml", "--version", "2", "--params", "{}"], "--params are the arguments of --class or --factory"),
        (["--version", "2", "--artefact", "absent.pkl"], "cannot read the artefact 'absent.pkl'"),
        (["--version", "2", "--artefact", "../two.pkl"], "without `..`"),
        (["no/such.yaml"], "cannot read no/such.yaml"),
    ],
)
def test_what_a_worker_would_refuse_is_refused_here(
    arguments: list[str], said: str, folder: Path, sent: list[Any]
) -> None:
    with pytest.raises(AttributaryError) as caught:
        deploy(folder, *arguments)
    assert said in str(caught.value)
    assert sent == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("models: [", "not YAML"),
        ("- a list", "expected a mapping"),
        (f"version: 2\nmodel: {{class: {BAYES}}}", "version: expected a text"),
        (f"version: '2'\nmodel: {{class: {BAYES}}}\nlearn: true", "learn: expected only"),
        ("version: '2'\nmodel: {class: a.B, params: {when: 2024-01-01}}", ""),
        ("version: '2'\nmodel: {class: a.B, params: {a: .nan}}", "finite"),
    ],
)
def test_a_file_that_is_wrong_is_refused(content: str, said: str, folder: Path, sent: list[Any]) -> None:
    test_what_a_worker_would_refuse_is_refused_here([file(folder, content)], said, folder, sent)


def test_only_a_configured_model_can_be_deployed(folder: Path, sent: list[Any]) -> None:
    with pytest.raises(AttributaryError, match=r"no model 'credti' is configured: did you mean 'credit'\?"):
        deploy(folder, "--version", "2", "--class", BAYES, model_id="credti")
    assert sent == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"version": "2", "class": BAYES}, r"class: .*\(put class below model\)"),
        ({"version": "2", "factory": FACTORY, "params": {}}, r"params: .*\(put params below model\)"),
        ({"version": "2", "model": {"class": BAYES}, "seed": 1}, "seed: expected only .* and sha256, got 1"),
    ],
)
def test_a_class_that_is_not_below_model_is_sent_there(folder: Path, content: dict[str, Any], said: str) -> None:
    with pytest.raises(DeploymentError, match=said):
        deploy(folder, file(folder, content), "--dry-run")


def test_a_version_of_a_sharded_model_is_not_sent_to_one_partition_alone(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(json.dumps({"models": {"credit": {"factory": FACTORY, "learn": False, "sharded": True}}}))
    given = ["--version", "2", "--factory", FACTORY, "--partition", "1", "--config", str(path)]
    done = CliRunner().invoke(cli, ["models", "deploy", "credit", *given])
    assert done.exit_code != 0
    assert "goes to all partitions" in str(done.exception) + done.output


@pytest.mark.parametrize("command", ["export", "import"])
def test_states_of_shards_are_not_moved(command: str, tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(json.dumps({"models": {"credit": {"factory": FACTORY, "learn": False, "sharded": True}}}))
    file = tmp_path / "credit.state"
    file.write_bytes(b"")
    arguments = ["models", command, "credit", str(file), "--config", str(path)]
    done = CliRunner().invoke(cli, [*arguments, "--force"] if command == "export" else [*arguments, "--yes"])
    assert done.exit_code != 0
    assert "credit is sharded" in str(done.exception) + done.output


@pytest.mark.parametrize(("n", "lacks"), [(3, ", but not to the shards of partitions 3: deploy it again"), (4, "")])
def test_a_list_says_which_shards_lack_a_version(
    n: int, lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = json.dumps({"version": "2", "factory": FACTORY}).encode()

    async def read(_config: Any) -> dict[str, list[Any]]:
        said = [
            SimpleNamespace(topic="models", partition=number, offset=7, timestamp=1000, key=b"credit", value=value)
            for number in reversed(range(n))
        ]
        return {"credit": said}

    monkeypatch.setattr(models_topic, "read_deployments", read)
    monkeypatch.setattr(topic_admin, "check_topics", lambda _config, _only: None)
    path = tmp_path / "attributary.yaml"
    credit = {"factory": FACTORY, "learn": False, "sharded": True}
    config = {"models": {"credit": credit}, "kafka": {"partitions": 4}, "control": {"allowed": [FACTORY]}}
    path.write_text(json.dumps(config))
    done = CliRunner().invoke(cli, ["models", "list", "--config", str(path)])
    assert done.exit_code == 0, done.output
    assert done.output.split("\t")[:3] == ["credit", "configured 1", f"deployed 2{lacks}"]

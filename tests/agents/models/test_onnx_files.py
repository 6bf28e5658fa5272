"""Files of ONNX in a worker: as the first version and as later ones, stored and restored, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from support.fingerprint import differences, of_state
from support.models.onnx_files import converted, graph, linear

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError, DeploymentError
from attributary_agents.models.deployments import Job, prepare
from attributary_agents.models.guards.allowlist import PLAIN, Allowlist
from attributary_agents.models.model_state import new_state
from attributary_agents.models.subprocess.build import build
from attributary_agents.models.trial import check_models
from attributary_agents.models.versions import configured_as
from attributary_agents.state.checkpoints import encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_explainers import OnnxModel, dump_model, load_model
from attributary_topics import Deployment
from tests.agents.stand_ins import DEAD_LETTERS, TOPIC, observations

ROWS = observations(400)
X, Y = np.array([[o.x["a"], o.x["b"]] for o in ROWS]), [o.y for o in ROWS]


@cache
def logistic(positive: bool = True) -> bytes:
    y = Y if positive else [not one for one in Y]
    return converted(LogisticRegression().fit(X, y), X, zipmap=False)


@cache
def of_columns() -> bytes:
    table = pd.DataFrame(
        {"b": X[:, 1].astype(np.float32), "a": X[:, 0].astype(np.float32), "city": ["Rome", "Oslo"] * 200}
    )
    columns = ColumnTransformer([("n", StandardScaler(), ["a", "b"]), ("c", OneHotEncoder(), ["city"])])
    return converted(make_pipeline(columns, LogisticRegression()).fit(table, Y), table)


def config(
    folder: Path, content: bytes = b"", *, name: str = "bank.onnx", file: dict[str, Any] | None = None, **more: Any
) -> Config:
    content = content or logistic()
    (folder / name).write_bytes(content)
    own = {
        "model": {"file": name, "sha256": hashlib.sha256(content).hexdigest(), **(file or {})},
        "learn": False,
        "alpha": 0.05,
        "publish": {"every": 50},
        "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}},
        "change": {"window": 50},
        **more,
    }
    return parse_config({"models": {"bank": own}, "artefacts": {"directory": str(folder)}})


def record(i: int, x: dict[str, Any] | None = None) -> Record:
    o = ROWS[i % len(ROWS)]
    # The order of the features is another one in every other record.
    given = x or (o.x if i % 2 == 0 else dict(reversed(o.x.items())))
    return Record(TOPIC, 0, i, i, b"bank", json.dumps({"x": given, "y": o.y}).encode())


def handle(partition: Partition, begin: int, end: int) -> list[Any]:
    return [(out.topic, out.key, out.value) for i in range(begin, end) for out in partition.handle(record(i))]


def refusal(folder: Path, *args: Any, **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        check_models(config(folder, *args, **more))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_the_first_version_and_goes_on_from_its_stored_state(
    tmp_path: Path,
) -> None:
    chosen = config(tmp_path)
    check_models(chosen)
    whole, first = (Partition(TOPIC, 0, chosen, {}.get) for _ in range(2))
    expected = handle(whole, 0, 400)
    found = handle(first, 0, 151)
    table = {
        b"bank": encode_state(first.models["bank"]),
        checkpoint_key(0): encode_checkpoint(first.offset, first.counters),
    }
    second = Partition(TOPIC, 0, chosen, table.get)
    found += handle(second, 151, 400)
    assert found == expected
    assert DEAD_LETTERS not in {topic for topic, _, _ in expected}
    assert len(expected) > 10
    state = whole.models["bank"]
    assert [*differences(of_state(second.models["bank"]), of_state(state))] == []
    importance = state.explainers["pfi"].importance
    assert importance["a"] > 10 * abs(importance["b"])
    assert state.current.spec == {"artefact": "bank.onnx", "sha256": hashlib.sha256(logistic()).hexdigest()}


def test_another_file_in_the_configuration_is_a_version_whose_change_is_explained(tmp_path: Path) -> None:
    chosen = config(tmp_path)
    partition = Partition(TOPIC, 0, chosen, {}.get)
    handle(partition, 0, 200)
    table = {
        b"bank": encode_state(partition.models["bank"]),
        checkpoint_key(0): encode_checkpoint(partition.offset, partition.counters),
    }
    changed = config(tmp_path, logistic(positive=False), version="2")
    after = Partition(TOPIC, 0, changed, table.get)
    sent = handle(after, 200, 300)
    first, second, *_ = [json.loads(value) for topic, _, value in sent if topic.endswith("incidents.v1")]
    assert first["id"] == second["id"]
    assert [(one["what"], one["life"]) for one in (first, second)] == [
        ("version", "suspected"),
        ("version", "confirmed"),
    ]
    told = second["explanation"]
    assert (told["route"], told["model_version_before"], told["model_version"]) == ("version", "1", "2")


def test_a_file_is_a_later_version_and_the_configuration_names_its_columns(tmp_path: Path) -> None:
    chosen = config(tmp_path, features={"a": "number", "b": "number"})
    (tmp_path / "two.onnx").write_bytes(logistic(positive=False))
    spec = {"artefact": "two.onnx", "sha256": hashlib.sha256(logistic(positive=False)).hexdigest()}
    made = load_model(prepare(Job.of(chosen, Deployment("bank", "2", spec)), in_full=True))
    assert (made.features, made.classes) == (("a", "b"), (0, 1))
    expected = LogisticRegression().fit(X, [not one for one in Y]).predict_proba(X[:1])[0]
    assert made.predict_many([ROWS[0].x], "any") == [pytest.approx({0: expected[0], 1: expected[1]}, abs=1e-5)]


def test_columns_are_those_of_the_file_of_the_configuration_or_that_are_declared(tmp_path: Path) -> None:
    declared = {"b": "number", "a": "number"}
    for more, names in (
        ({}, None),
        ({"features": declared}, ("b", "a")),
        ({"features": declared, "file": {"features": ["a", "b"]}}, ("a", "b")),
        ({"content": of_columns()}, ("b", "a", "city")),
    ):
        chosen = config(tmp_path, **more)
        assert new_state("bank", chosen.models["bank"]).model.features == names
    named = config(tmp_path, file={"features": ["a", "b"], "classes": [False, True]}).models["bank"]
    assert [type(one) for one in new_state("bank", named).model.classes] == [bool, bool]
    assert configured_as(named) != configured_as(config(tmp_path).models["bank"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"features": {"a": "number"}}, "bank.onnx: it takes 2 columns, and `features` of the model declares 1"),
        ({"file": {"features": ["a", "b", "c"]}}, "bank.onnx: the ONNX model takes 2 columns, and features names 3"),
        ({"file": {"classes": ["u", "v", "w"]}}, "has 2 columns, and there are 3 classes"),
        ({"learn": True}, "set `learn: false`"),
        ({"loss": "squared"}, "the ONNX model is a classifier: use the loss brier"),
    ],
)
def test_what_does_not_fit_is_refused_before_the_start(more: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path, **more)


def test_a_column_that_no_observation_may_have_is_named(tmp_path: Path) -> None:
    declared = {"a": "number", "b": "number", "town": "category"}
    said = refusal(tmp_path, of_columns(), features=declared)
    assert "it takes 'city', which `features` of the model does not declare" in said


def test_an_observation_that_the_file_cannot_read_is_a_dead_letter_with_the_reason(tmp_path: Path) -> None:
    partition = Partition(TOPIC, 0, config(tmp_path, file={"features": ["a", "b"]}), {}.get)
    (sent,) = partition.handle(record(0, {"a": "one", "b": 1.0}))
    assert sent.topic == DEAD_LETTERS
    headers = dict(sent.headers)
    assert headers["attributary-dlq-reason"] == b"model_failed"


def test_a_new_hash_is_wanted_where_there_is_none_and_where_it_is_another(tmp_path: Path) -> None:
    sha256 = hashlib.sha256(logistic()).hexdigest()
    assert (
        refusal(tmp_path, file={"sha256": None}) == f"models.bank: model: bank.onnx has no hash; write sha256: {sha256}"
    )
    assert f"sha256 is {sha256}, the configuration says" in refusal(tmp_path, file={"sha256": "9f2c" * 16})


def test_features_and_classes_beside_other_files_are_told_where_they_mean_nothing(tmp_path: Path) -> None:
    from sklearn.linear_model import LinearRegression

    content = dump_model(LinearRegression().fit(X, Y))
    state = new_state("bank", config(tmp_path, content, name="bank.pkl", file={"features": ["a", "b"]}).models["bank"])
    assert state.model.features == ("a", "b")
    said = refusal(tmp_path, content, name="bank.pkl", file={"classes": ["u", "v"]})
    assert "`classes` names the labels of a classifier, which this model is not: leave it out" in said


# Bytes that somebody else has written


def test_stored_bytes_hold_no_more_than_the_model_and_are_let_through(tmp_path: Path) -> None:
    model = OnnxModel(logistic())
    for allowlist in (PLAIN, Allowlist(config(tmp_path).models["bank"])):
        assert allowlist.load(dump_model(model)).content == model.content


@pytest.mark.long
def test_a_file_that_would_take_all_memory_ends_the_process_that_builds_it_and_is_refused(tmp_path: Path) -> None:
    """A file of 200 bytes makes a table of 400 GB of whatever it is asked."""
    shape = helper.make_tensor("shape", TensorProto.INT64, [2], [100_000, 1_000_000])
    nodes = [
        helper.make_node("Constant", [], ["s"], value=shape),
        helper.make_node("ConstantOfShape", ["s"], ["huge"]),
        helper.make_node("ReduceSum", ["huge"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["x", "sum"], ["y"]),
    ]
    table = (TensorProto.FLOAT, [None, 1])
    content = graph(nodes, {"x": table}, {"y": table}).SerializeToString()
    chosen = config(tmp_path)
    (tmp_path / "huge.onnx").write_bytes(content)
    spec = {"artefact": "huge.onnx", "sha256": hashlib.sha256(content).hexdigest()}
    with pytest.raises(DeploymentError, match="memory"):
        asyncio.run(build(chosen, Deployment("bank", "2", spec)))


@pytest.mark.long
def test_a_file_beyond_the_limit_of_a_model_is_refused(tmp_path: Path) -> None:
    raw = config(tmp_path).model_dump(mode="json", by_alias=True, exclude_defaults=True)
    chosen = parse_config({**raw, "control": {"max_model_bytes": 100}})
    spec = {"artefact": "bank.onnx", "sha256": hashlib.sha256(logistic()).hexdigest()}
    with pytest.raises(DeploymentError, match="max_model_bytes is 100"):
        asyncio.run(build(chosen, Deployment("bank", "2", spec)))


# Commands


@pytest.mark.parametrize("content", [logistic(), of_columns()], ids=["table", "columns"])
def test_check_rehearses_a_file_with_rows_and_without(content: bytes, tmp_path: Path) -> None:
    chosen = config(tmp_path, content, file=None if content == of_columns() else {"features": ["a", "b"]})
    raw = chosen.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (tmp_path / "attributary.yaml").write_text(json.dumps(raw))
    command = ["check", "--offline", "-c", str(tmp_path / "attributary.yaml")]
    if content == logistic():
        found = CliRunner().invoke(cli, command)
        assert found.exit_code == 0, found.output
        assert "bank: works" in found.output
    rows = "\n".join(f"{o.x['a']},{o.x['b']},Rome,{o.y}" for o in ROWS[:60])
    (tmp_path / "rows.csv").write_text(f"a,b,city,y\n{rows}\n")
    found = CliRunner().invoke(cli, [*command, "--sample", str(tmp_path / "rows.csv")])
    if content == logistic():
        assert found.exit_code == 0, found.output
    assert "bank: works" in found.output


def test_replay_gives_the_events_of_a_worker(tmp_path: Path) -> None:
    chosen = config(tmp_path, file={"features": ["a", "b"]})
    raw = chosen.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (tmp_path / "attributary.yaml").write_text(json.dumps(raw))
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"x": o.x, "y": o.y}) for o in ROWS[:200]))
    command = ["replay", str(tmp_path / "rows.jsonl"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(tmp_path)]
    found = CliRunner().invoke(cli, command)
    assert found.exit_code == 0, found.output
    lines = (tmp_path / "importances.jsonl").read_text().splitlines()
    partition = Partition(TOPIC, 0, chosen, {}.get)
    sent = [out for i in range(200) for out in partition.handle(record(i, ROWS[i].x))]
    expected = [json.loads(out.value)["features"] for out in sent if out.topic.endswith("importances.v1")]
    assert [json.loads(line)["features"] for line in lines] == expected
    assert len(expected) > 5


def test_the_command_deploys_a_file(tmp_path: Path) -> None:
    raw = config(tmp_path).model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (tmp_path / "attributary.yaml").write_text(json.dumps(raw))
    command = ["models", "deploy", "bank", "--version", "2", "--artefact", "bank.onnx", "--dry-run", "--json"]
    found = CliRunner().invoke(cli, [*command, "-c", str(tmp_path / "attributary.yaml")])
    assert json.loads(found.stdout)["sha256"] == hashlib.sha256(logistic()).hexdigest()


def test_a_table_of_doubles_is_given_doubles() -> None:
    weights = np.array([[2.0], [1e-9]])
    model = graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (TensorProto.DOUBLE, [None, 2])},
        {"y": (TensorProto.DOUBLE, [None, 1])},
    )
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.DOUBLE, [2, 1], weights.ravel().tolist()))
    made = OnnxModel(model.SerializeToString(), ["a", "b"])
    assert made.predict_many([{"a": 1.0, "b": 3.0}], "number") == [2.0 + 3e-9]
    assert OnnxModel(linear(weights.tolist()).SerializeToString(), ["a", "b"]).predict_many(
        [{"a": 1.0, "b": 3.0}], "number"
    ) == [2.0]

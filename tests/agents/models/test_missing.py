"""Missing values from bytes to events: what the model is given, what is explained, and that a replay is a worker."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner
from river import base, compose, linear_model, preprocessing

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.kafka.observations import encode_value
from attributary_agents.state.checkpoints import encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.stand_ins import DEAD_LETTERS, TOPIC, header

N = 240
ROWS = {"a": "number", "b": "number", "colour": "category"}


class Writing(base.Classifier):
    """Predicts a half, whatever there is, and writes down what it is asked and taught."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012 - one for all copies
    taught: list[dict[str, Any]] = []  # noqa: RUF012

    def predict_proba_one(self, x: dict[str, Any]) -> dict[bool, float]:
        self.asked.append(dict(x))
        return {False: 0.5, True: 0.5}

    def learn_one(self, x: dict[str, Any], y: bool) -> None:
        self.taught.append(dict(x))


def writing() -> Writing:
    Writing.asked.clear()
    Writing.taught.clear()
    return Writing()


def partition_of(**model: Any) -> Partition:
    publish = {"every": 20}
    chosen = {"factory": "tests.agents.models.test_missing:writing", "alpha": 0.05, "publish": publish, **model}
    return Partition(TOPIC, 0, parse_config({"models": {"m": chosen}}), {}.get)


def sent(partition: Partition, *values: bytes) -> list[Outgoing]:
    first = partition.offset + 1
    return [
        out for i, value in enumerate(values) for out in partition.handle(Record(TOPIC, 0, first + i, i, b"m", value))
    ]


def complete(n: int = 20) -> list[bytes]:
    return [b'{"x": {"a": %d, "b": 1.5, "colour": "red"}, "y": true}' % i for i in range(n)]


NOTHING = [
    b'{"x": {"a": 1, "b": null, "colour": "red"}, "y": true}',
    b'{"x": {"a": 1, "b": NaN, "colour": "red"}, "y": true}',
    b'{"x": {"a": 1, "colour": "red"}, "y": true}',
]
WITHOUT, FILLED = {"a": 1, "colour": "red"}, {"a": 1, "b": -9.0, "colour": "red"}


@pytest.mark.parametrize("value", NOTHING)
@pytest.mark.parametrize(
    ("policy", "given", "is_explained"),
    [
        ({}, WITHOUT, True),
        ({"missing": "absent"}, WITHOUT, True),
        ({"missing": "skip"}, WITHOUT, False),
        ({"missing": "value"}, {"a": 1, "b": None, "colour": "red"}, True),
        ({"missing": {"b": -9.0}}, FILLED, True),
        ({"missing": {"a": -9.0}}, WITHOUT, True),
    ],
)
def test_the_model_is_given_what_the_policy_says(
    value: bytes, policy: dict[str, Any], given: dict[str, Any], is_explained: bool
) -> None:
    partition = partition_of(features=ROWS, explainers={"pfi": {}, "sage": {}}, **policy)
    sent(partition, *complete())
    state = partition.models["m"]
    before = {name: explainer.n_observations for name, explainer in state.explainers.items()}
    n_stored = {name: explainer.reservoir.n_seen for name, explainer in state.explainers.items()}
    Writing.asked.clear()
    Writing.taught.clear()

    assert [out for out in sent(partition, value) if out.topic == DEAD_LETTERS] == []
    assert Writing.asked[0] == given
    assert Writing.taught == [given]
    assert (state.n_observations, state.n_missing) == (21, 1)
    assert state.quality is not None
    assert state.quality.n_observations == 21
    assert state.loss_watch is not None
    assert state.loss_watch.monitor.n_observations == 21
    for name, explainer in state.explainers.items():
        assert explainer.n_observations - before[name] == is_explained
        assert explainer.reservoir.n_seen - n_stored[name] == is_explained
        assert explainer.skipped["missing"] == (not is_explained)


@pytest.mark.parametrize("policy", ["absent", "skip"])
def test_an_observation_without_a_value_is_a_dead_letter_and_not_learnt(policy: str) -> None:
    partition = partition_of(features=ROWS, missing=policy)
    sent(partition, *complete(3))
    values = [b'{"x": {}, "y": true}', b'{"x": {"a": null, "b": NaN, "colour": null}, "y": true}']
    letters = sent(partition, *values)
    assert [header(out, "attributary-dlq-reason") for out in letters] == ["missing_feature"] * 2
    assert f"missing` of the model is {policy}" in header(letters[0], "attributary-dlq-message")
    assert (partition.models["m"].n_observations, partition.models["m"].n_missing) == (3, 0)


@pytest.mark.parametrize("policy", ["value", {"a": 0.0}])
def test_an_observation_without_a_value_is_learnt_where_the_policy_gives_the_model_some(policy: Any) -> None:
    partition = partition_of(features=ROWS, missing=policy)
    assert sent(partition, b'{"x": {}, "y": true}') == []
    assert Writing.taught == [{"a": None, "b": None, "colour": None} if policy == "value" else {"a": 0.0}]
    assert partition.models["m"].n_missing == 3


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"x": {"a": "1", "b": null}, "y": true}', "wrong_type"),
        (b'{"x": {"a": Infinity, "b": NaN}, "y": true}', "not_finite"),
        (b'{"x": {"a": 1, "b": NaN}, "y": null}', "missing_label"),
        (b'{"x": {"a": 1, "b": NaN}, "y": NaN}', "missing_label"),
    ],
)
@pytest.mark.parametrize("policy", ["absent", "skip", "value", {"b": 1.0}])
def test_what_is_wrong_beside_missing_values_is_refused_as_ever(policy: Any, value: bytes, reason: str) -> None:
    partition = partition_of(features=ROWS, missing=policy)
    (letter,) = sent(partition, value)
    assert header(letter, "attributary-dlq-reason") == reason


SCALER = {"class": "river.preprocessing.StandardScaler"}
ONE_HOT = {"class": "river.preprocessing.OneHotEncoder"}
MODELS: dict[str, tuple[Any, bool]] = {
    "scaler and logistic regression": ([SCALER, {"class": "river.linear_model.LogisticRegression"}], False),
    "Hoeffding tree": ({"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 20}}, True),
    "adaptive tree": ({"class": "river.tree.HoeffdingAdaptiveTreeClassifier", "params": {"grace_period": 20}}, True),
    "forest": ({"class": "river.forest.ARFClassifier", "params": {"n_models": 3, "seed": 1}}, True),
    "naive Bayes": ({"class": "river.naive_bayes.GaussianNB"}, False),
    "nearest neighbours": ([SCALER, {"class": "river.neighbors.KNNClassifier"}], False),
    "linear regression": ([SCALER, {"class": "river.linear_model.LinearRegression"}], False),
    "one-hot and logistic regression": ([ONE_HOT, {"class": "river.linear_model.LogisticRegression"}], True),
    "canonical pipeline": ({"factory": "tests.agents.models.test_missing:canonical"}, True),
}


def canonical() -> Any:
    numbers = compose.SelectType(float, int) | preprocessing.StandardScaler()
    return (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | linear_model.LogisticRegression()


def rows(*, is_text: bool, is_number: bool = False, n: int = N) -> list[dict[str, Any]]:
    """Rows of which one in four lacks something, and the label follows a."""
    draw = random.Random(7)
    made = []
    for _ in range(n):
        x: dict[str, Any] = {"a": draw.uniform(-1, 1), "b": draw.gauss(0, 1)}
        if is_text:
            x["colour"] = draw.choice(["red", "green", "blue"])
        y = round(2 * x["a"] + 1, 3) if is_number else x["a"] > 0
        for name in x:
            if draw.random() < 0.1:
                x[name] = None
        made.append({"x": x, "y": y})
    return [row for row in made if any(value is not None for value in row["x"].values())]


def model_of(name: str) -> tuple[dict[str, Any], bool]:
    model, is_text = MODELS[name]
    return (model if "factory" in model else {"model": model}), is_text


@pytest.mark.parametrize("name", MODELS)
def test_no_model_fails_on_a_missing_value_by_default(name: str) -> None:
    model, is_text = model_of(name)
    partition = partition_of(
        **{"factory": None, **model, "explainers": {"pfi": {}, "sage": {}}, "change": {"window": 50}}
    )
    made = rows(is_text=is_text, is_number=name == "linear regression")
    # As Python's json writes them: NaN where a number is missing, null for text; every third has not even the name.
    values = []
    for i, row in enumerate(made):
        x = {k: math.nan if v is None and k != "colour" else v for k, v in row["x"].items()}
        if i % 3 == 0:
            x = {k: v for k, v in x.items() if v is not None and v == v}
        values.append(json.dumps({"x": x, "y": row["y"]}).encode())
    out = sent(partition, *values)
    state = partition.models["m"]
    assert [header(one, "attributary-dlq-message") for one in out if one.topic == DEAD_LETTERS] == []
    assert (state.n_observations, state.n_failed) == (len(made), 0)
    for explainer in state.explainers.values():
        assert explainer.skipped["model_error"] == explainer.skipped["missing"] == 0
        assert set(explainer.importance) == ({"a", "b", "colour"} if is_text else {"a", "b"})
        assert max(explainer.importance, key=explainer.importance.__getitem__) == "a"


POLICIES: list[Any] = ["absent", "skip", "value", {"a": 0.0, "colour": "none"}]


@pytest.mark.long
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_replay_of_a_csv_with_empty_cells_equals_a_worker_with_restarts(tmp_path: Path, policy: Any) -> None:
    made = rows(is_text=True)
    own: dict[str, Any] = {
        "model": [{"class": "river.preprocessing.OneHotEncoder"}, {"class": "river.naive_bayes.BernoulliNB"}],
        "features": ROWS,
        "alpha": 0.05,
        "missing": policy,
        "explainers": {"pfi": {}, "sage": {}},
        "change": {"window": 40, "detector": None, "threshold": 0.01},
        "publish": {"every": 20},
    }
    if policy == "value":  # a model that asks for None
        own |= {"model": None, "factory": "tests.agents.models.test_missing:writing"}
    raw = {"models": {"m": own}}
    (tmp_path / "attributary.yaml").write_text(yaml.safe_dump(raw))
    with (tmp_path / "data.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["a", "b", "colour", "y"])
        table.writerows([[*row["x"].values(), int(row["y"])] for row in made])
    out = tmp_path / "out"
    command = ["replay", str(tmp_path / "data.csv"), "-c", str(tmp_path / "attributary.yaml"), "--out", str(out)]
    done = CliRunner().invoke(cli, [*command, "--json"], catch_exceptions=False)
    counts = json.loads(done.stdout)
    assert (counts["observations"], counts["explained"], counts["dead_letters"]) == (len(made), len(made), 0)

    config = parse_config(raw)
    partition = Partition(TOPIC, 0, config, {}.get)
    published: list[bytes | None] = []
    for i, row in enumerate(made):
        if i % 37 == 36:  # a new process goes on from what is stored
            partition = restarted(partition)
        missing = (None, math.nan, ...)[i % 3]
        x = {name: missing if value is None else value for name, value in row["x"].items()}
        value = encode_value({"x": {k: v for k, v in x.items() if v is not ...}, "y": int(row["y"])})
        published += [one.value for one in partition.handle(Record(TOPIC, 0, i, 0, b"m", value))]
    lines = [
        *(out / "importances.jsonl").read_bytes().splitlines(),
        *(out / "incidents.jsonl").read_bytes().splitlines(),
    ]
    assert sorted(map(numbers_of, published)) == sorted(map(numbers_of, lines))
    assert len(lines) > 2 * len(made) // 20 - 2
    assert partition.models["m"].n_missing == sum(value is None for row in made for value in row["x"].values())


def numbers_of(value: bytes | None) -> str:
    """What an event says, without its place in the topic: the replay has no retries."""
    return json.dumps(orjson.loads(value or b""), sort_keys=True)


def restarted(partition: Partition) -> Partition:
    table = {
        state.model_id.encode(): encode_state(state)
        for state in [partition.models[model_id] for model_id in sorted(partition.dirty)]
    }
    table[checkpoint_key(0)] = encode_checkpoint(partition.offset, partition.counters)
    return Partition(TOPIC, 0, partition.config, table.get)

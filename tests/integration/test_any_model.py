"""One worker on Apache Kafka with a tree that learns, with files of ONNX and with a served model, and killed twice.

Asked of it: the bytes that an undisturbed worker leaves, what each kind of model says, and who shows that.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np
import pytest
import yaml
from benchmarks.models.given import WAYS, file_of
from benchmarks.models.same import Explained, configured, in_own_process, published
from click.testing import CliRunner
from sklearn.linear_model import LogisticRegression
from support.kafka import alter_topic, produce, read_all
from support.models.onnx_files import converted
from support.states import stored_deployments
from support.undisturbed import check_equal, events_by_id
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.demo.local_broker import free_port
from attributary_agents.kafka.topics import create_topics
from tests.agents.models.trained import ESTIMATORS, N_TRAINED, ROWS, X, Y
from tests.integration.configs import logistic_config, observation
from tests.integration.serve.process import ServeProcess
from tests.integration.versions import deploy, versions

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N_SHOP, N_CREDIT = 1000, 800
CITIES = ("Köln", "Łódź", "São Paulo", "Zürich")
PDP = {"max_features": 2, "window": 100, "grid_size": 5, "every": 200}
BANKS = {"bank-file": "ONNX", "bank-served": "V2 over HTTP"}
"""The same forest under two names, and in which way each is given."""

Sent = tuple[bytes, bytes, list[Any]]


def shop(i: int) -> bytes:
    """Return a record with a text, a number that may be null, and a label of three that these decide."""
    rng = random.Random(i)
    city, age = rng.choice(CITIES), None if rng.random() < 0.1 else rng.randint(18, 90)
    bought = "nothing" if city in CITIES[:2] else "much" if (age or 0) > 50 else "little"
    return json.dumps({"x": {"city": city, "age": age, "noise": rng.random()}, "y": bought}).encode()


def trained(*, flipped: bool) -> bytes:
    """The file of a logistic regression that has learnt that a decides, or b."""
    rows = [json.loads(observation(i, flipped=flipped)) for i in range(500)]
    table = np.array([[row["x"][name] for name in "abc"] for row in rows])
    return converted(LogisticRegression().fit(table, [row["y"] for row in rows]), table, zipmap=False)


def trees() -> dict[str, Any]:
    """Two trees that learn; one of them publishes no values of features."""
    tree = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 50, "delta": 0.01}}
    shared = {"model": tree, "alpha": 0.005, "change": {"window": 200}, "publish": {"every": 100}}
    explainers = {"pfi": {"n_samples": 1}, "mdi": {}, "pdp": PDP}
    return {
        "shop": {**shared, "explainers": explainers},
        "quiet": {**shared, "explainers": {"pdp": {**PDP, "publish_values": False}}},
    }


def shuffled(*streams: list[Sent]) -> list[Sent]:
    """The records of several models among each other; each model's stay in their order."""
    keys = [i for i, stream in enumerate(streams) for _ in stream]
    random.Random(1).shuffle(keys)
    rests = [iter(stream) for stream in streams]
    return [next(rests[key]) for key in keys]


class Ran(NamedTuple):
    """What the workers were configured with, and what they have left."""

    config: Config
    path: Path
    metrics: dict[str, dict[tuple[tuple[str, str], ...], float]]
    deployments: dict[tuple[int, int], int]
    importances: list[bytes]
    incidents: list[dict[str, Any]]

    def events(self, model_id: str) -> list[dict[str, Any]]:
        """What was published of a model's importances."""
        return [event for value in self.importances if (event := json.loads(value))["model_id"] == model_id]

    def curves(self, model_id: str) -> list[dict[str, Any]]:
        """What was published of its dependences."""
        return [event for event in self.events(model_id) if event.get("event") == "dependence"]


@pytest.fixture(scope="module")
def ran(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder, bootstrap = tmp_path_factory.mktemp("any"), kafka_broker.bootstrap
    one = file_of(folder, "one.onnx", trained(flipped=False))
    (folder / "two.onnx").write_bytes(trained(flipped=True))
    forest = ESTIMATORS["forest"].fit(X[:N_TRAINED], Y[:N_TRAINED])
    raw = logistic_config(bootstrap)
    credit = {**raw["models"]["credit"], "model": one, "learn": False}
    with ExitStack() as stack:
        banks = {}
        for name, way in BANKS.items():
            model = stack.enter_context(WAYS[way].give(forest, folder))
            (banks[name],) = configured(model, folder)["models"].values()
        raw |= {"models": {**trees(), "credit": credit, **banks}, "artefacts": {"directory": str(folder)}}
        config = parse_config(raw)
        create_topics(config)
        # Each write of a log of deployments is looked at, also one that compaction would have removed meanwhile.
        kept = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(3_600_000)}
        alter_topic(bootstrap, config.kafka.changelog, kept)
        topics = config.kafka.topics
        bought: list[Sent] = [(b"quiet" if i % 3 == 0 else b"shop", shop(i), []) for i in range(N_SHOP)]
        lent: list[Sent] = [(b"credit", observation(i, flipped=i > N_CREDIT // 2), []) for i in range(N_CREDIT)]
        asked: list[list[Sent]] = [
            [(name.encode(), json.dumps({"x": dict(x), "y": y}).encode(), []) for x, y in ROWS] for name in BANKS
        ]
        early = shuffled(bought[: N_SHOP // 2], lent[: N_CREDIT // 2], *asked)
        late = shuffled(bought[N_SHOP // 2 :], lent[N_CREDIT // 2 :])
        produce(bootstrap, topics.observations, early)
        worker = WorkerProcess(raw, folder)
        with worker:
            worker.wait_consumed(len(early) // 2, timeout_s=120)
            worker.kill()
        with worker:
            worker.wait_consumed(len(early), timeout_s=120)
            deploy(worker, "credit", "--artefact", "two.onnx", "--version", "2")
            wait_for("it is stored", lambda: len(stored_deployments(config)) == 1)
            produce(bootstrap, topics.observations, late)
            wait_for("version 2 of credit", lambda: versions(worker).get("credit") == "2")
            worker.kill()
        with worker:
            worker.wait_consumed(len(early) + len(late) + 1, timeout_s=120)
            metrics = worker.metrics()
            assert worker.stop() == 0
        path = folder / "attributary.yaml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False))
        importances, incidents = (
            [value or b"" for value, _ in events_by_id(read_all(bootstrap, topic)).values()]
            for topic in (topics.importances, topics.incidents)
        )
        told = [json.loads(value) for value in incidents]
        yield Ran(config, path, metrics, stored_deployments(config), importances, told)


def test_kills_around_observations_and_a_deployment_leave_the_bytes_of_an_undisturbed_worker(ran: Ran) -> None:
    (bootstrap,) = ran.config.kafka.brokers
    sent = check_equal(bootstrap, ran.config, ran.deployments).sent  # events by their ids; and the states
    assert len(sent[ran.config.kafka.topics.importances]) == len(ran.importances)
    assert not sent[ran.config.kafka.topics.dead_letters]


def test_a_file_of_onnx_is_followed_by_the_next_whose_change_is_told(ran: Ran) -> None:
    first, second, *_ = [one for one in ran.incidents if one["what"] == "version"]
    assert (first["revision"], first["model_version"], first["explanation"]) == (1, "2", None)
    assert (second["id"], second["explanation"]["model_version_before"]) == (first["id"], "1")
    events = ran.events("credit")
    first, last = (one["features"] for one in (events[0], events[-1]))
    assert (first["a"]["rank"], last["b"]["rank"]) == (1, 1)


@pytest.mark.parametrize("name", BANKS)
def test_a_trained_model_says_what_the_library_says(name: str, ran: Ran) -> None:
    forest = ESTIMATORS["forest"].fit(X[:N_TRAINED], Y[:N_TRAINED])
    reference = in_own_process(forest, ROWS, name)
    events = published(value for value in ran.importances if json.loads(value)["model_id"] == name)
    assert len(events) == 3
    assert Explained(events, reference.left_out, 0.0).differs(reference) <= WAYS[BANKS[name]].tolerance


def test_trees_and_curves_are_told_and_values_only_where_they_may(ran: Ran) -> None:
    last = {event["feature"]: event for event in ran.curves("shop")}
    assert set(last) >= {"city", "age"}
    assert set(last["city"]["values"]) == set(CITIES)
    assert last["city"]["label"] in ("nothing", "much", "little")
    assert {event["kind"] for event in ran.curves("quiet")} == {"number"}
    told = [event for event in map(json.loads, ran.importances) if event["explainer"] == "mdi"]
    assert {event["model_id"] for event in told} == {"shop"}
    assert told[-1]["features"].keys() >= {"city"}


def test_metrics_have_trees_and_no_curves(ran: Ran) -> None:
    labelled = [
        (name.removeprefix("attributary_"), dict(labels)) for name, found in ran.metrics.items() for labels in found
    ]
    of_mdi = [(name, labels.get("feature")) for name, labels in labelled if labels.get("explainer") == "mdi"]
    assert ("feature_importance", "city") in of_mdi
    assert {name for name, _ in of_mdi} == {
        "feature_importance",
        "feature_importance_share_ratio",
        "explainer_observations",
    }, "no intervals, no shifts; a reference only after 2000 observations"
    assert not [name for name, labels in labelled if labels.get("explainer") == "pdp"]


def test_the_command_names_trees_without_a_removal(ran: Ran) -> None:
    done = CliRunner().invoke(cli, ["importance", "shop", "--config", str(ran.path)])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "pfi (interventional)" in done.output
    assert "\tmdi\t" in done.output


def test_the_page_shows_trees_and_curves(ran: Ran) -> None:
    (city,) = [event for event in ran.curves("shop") if event["feature"] == "city"][-1:]
    mdi = [event for event in ran.events("shop") if event["explainer"] == "mdi"]
    serve = ServeProcess(ran.path, ran.path.parent, free_port())
    try:
        serve.wait_until_it_answers()
        of_model = httpx.get(f"{serve.address}/api/v1/models/shop").json()
        assert [one["name"] for one in of_model["explainers"]] == ["pfi", "mdi"]
        assert set(of_model["dependences"]) >= {"city", "age"}
        answer = httpx.get(f"{serve.address}/api/v1/models/shop/dependences", params={"feature": "city"}).json()
        newest = {one["label"]: one for one in answer["dependences"]}[city["label"]]
        assert dict(zip(newest["values"], newest["mean"], strict=True)) == pytest.approx(
            dict(zip(city["values"], city["mean"], strict=True)), rel=1e-6
        )
        assert httpx.get(f"{serve.address}/api/v1/models/quiet").json()["explainers"] == []
        latest = httpx.get(f"{serve.address}/api/v1/models/shop/importances", params={"explainer": "mdi"}).json()
        features = {one["feature"]: one for one in latest["features"]}
        assert features["city"]["latest"] == pytest.approx(mdi[-1]["features"]["city"]["importance"], rel=1e-4)
        assert features["city"]["latest_half_width"] is None
    finally:
        assert serve.stop() == 0

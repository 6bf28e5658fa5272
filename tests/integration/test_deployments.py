"""New versions of models on Apache Kafka: while observations flow, through kills, on two workers, and bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.kafka import alter_topic, produce, read_all
from support.states import stored, stored_deployments
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_explainers import dump_model
from tests.integration.configs import created, observation
from tests.integration.versions import deploy, versions

pytestmark = [pytest.mark.long, pytest.mark.kafka]
MODELS = ("credit", "fraud")
N = 2000
LATER = 40


def trained(n: int = 500) -> bytes:
    """A logistic regression that has learnt that b decides."""
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    for i in range(n):
        one = json.loads(observation(i, flipped=True))
        model.learn_one(one["x"], one["y"])
    return dump_model(model)


def configured(broker: Broker, tmp_path: Path, **kafka: Any) -> tuple[dict[str, Any], Config]:
    (tmp_path / "artefacts").mkdir()
    (tmp_path / "artefacts/two.pkl").write_bytes(trained())
    raw, config = created(broker, models=MODELS, artefacts={"directory": str(tmp_path / "artefacts")}, **kafka)
    # Each write of a log of deployments is looked at, also one that compaction would have removed meanwhile.
    kept = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(3_600_000)}
    alter_topic(broker.bootstrap, config.kafka.changelog, kept)
    return raw, config


def test_a_deployment_while_observations_flow(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = configured(kafka_broker, tmp_path)
    # So many that the version comes while observations are handled.
    n, last = 4000, 400
    topics, send = config.kafka.topics, [(b"credit", observation(i), []) for i in range(n)]
    produce(kafka_broker.bootstrap, topics.observations, send[: n // 2])
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(n // 2, timeout_s=120)
        said = deploy(worker, "credit", "--artefact", "two.pkl", "--version", "2")
        assert said["sent"]
        # One of these finds the version waiting; which one is for the worker to say.
        produce(kafka_broker.bootstrap, topics.observations, send[n // 2 : -last])
        wait_for("all is read", lambda: worker.total("records_consumed_total") == n - last + 1)
        # On a busy machine it may be the first of these, and its change is explained with the 210th from it on.
        produce(kafka_broker.bootstrap, topics.observations, send[-last:])
        wait_for("version 2 of credit", lambda: versions(worker).get("credit") == "2")
        worker.wait_consumed(n + 1, timeout_s=120)
        assert worker.total("model_versions_total") == 1
        again = deploy(worker, "credit", "--artefact", "two.pkl", "--version", "2")
        wait_for("all is read", lambda: worker.total("records_consumed_total") == n + 2)
        listed = CliRunner().invoke(cli, ["models", "list", "-c", str(worker.config_path), "--json"])
        assert worker.stop() == 0
    (after,) = stored_deployments(config).values()
    bootstrap = kafka_broker.bootstrap
    sent = check_equal(bootstrap, config, {(0, said["offset"]): after, (0, again["offset"]): n}).sent
    incidents = [json.loads(value or b"") for value, _ in sent[topics.incidents].values()]
    first, second, *_ = [event for event in incidents if event["what"] == "version"]
    assert (first["life"], second["reason"], second["life"]) == ("suspected", "confirmed", "confirmed")
    assert first["id"] == second["id"]
    assert first["id"].endswith(f":{after + 1}:0")
    assert first["source"]["offset"] == after + 1 == second["source"]["offset"] - 209
    change = second["explanation"]
    assert (change["model_version_before"], change["model_version"]) == ("1", "2")
    features = change["importances"]["pfi"]["features"]
    assert (features["a"]["significant"], features["a"]["delta"] < 0) == (True, True)
    events = [json.loads(value or b"") for value, _ in sent[topics.importances].values()]
    assert all((event["model_version"] == "2") == (event["source"]["offset"] > after) for event in events)
    rows = {row["model_id"]: row for row in json.loads(listed.stdout)}
    assert rows["credit"]["deployed"] == "2"
    assert rows["fraud"]["deployed"] is None


@pytest.mark.parametrize("moment", ["at once", "once taken over"])
def test_a_kill_around_a_deployment_leaves_the_same_events(moment: str, kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = configured(kafka_broker, tmp_path)
    raw["checkpoint"] = {"interval_s": 600, "max_observations": 750}
    topics = config.kafka.topics
    send = [(MODELS[i % 7 == 0].encode(), observation(i, flipped=i > N // 2), []) for i in range(N + LATER)]
    produce(kafka_broker.bootstrap, topics.observations, send[: N // 2], partition=0)
    worker = WorkerProcess(raw, tmp_path)
    for n, version in ((N // 2, "2"), (3 * N // 4, "3")):
        with worker:
            worker.wait_consumed(n, timeout_s=120)
            deploy(worker, "credit", "--artefact", "two.pkl", "--version", version)
            # A version takes over with an observation that comes after it was read.
            if moment == "once taken over":
                wait_for("it is stored", lambda: len(stored_deployments(config)) == int(version) - 1)  # noqa: B023
            produce(kafka_broker.bootstrap, topics.observations, send[n : n + N // 4], partition=0)
            if moment == "once taken over":
                wait_for("it took over", lambda: versions(worker).get("credit") == version)  # noqa: B023
            worker.kill()
    with worker:
        wait_for("both are stored", lambda: len(stored_deployments(config)) == 2)
        produce(kafka_broker.bootstrap, topics.observations, send[N:], partition=0)
        worker.wait_consumed(N + LATER + 2, timeout_s=120)
        wait_for("version 3 of credit", lambda: versions(worker).get("credit") == "3")
        assert worker.stop() == 0
    seen = stored_deployments(config)
    assert len(seen) == 2
    sent = check_equal(kafka_broker.bootstrap, config, seen).sent
    incidents = [json.loads(value or b"") for value, _ in sent[topics.incidents].values()]
    # Killed at once, the worker may read both versions after all observations: then the second one alone takes over.
    apart = len(set(seen.values())) == 2
    told = sorted(event["model_version"] for event in incidents if (event["what"], event["revision"]) == ("version", 1))
    assert told == (["2", "3"] if apart else ["3"])
    assert apart or moment == "at once"


def test_bad_control_records_are_dead_letters_and_the_worker_lives(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = configured(kafka_broker, tmp_path)
    topics = config.kafka.topics
    bayes = '"model": {"class": "river.naive_bayes.GaussianNB"}'
    bad: list[tuple[bytes | None, bytes | None, str]] = [
        (b"credit", b"{poison", "invalid_json"),
        (b"credit", None, "empty_value"),
        (b"\xff", b'{"version": "2"}', "invalid_model_id"),  # none at all a compacted topic refuses by itself
        (b"debit", f'{{"version": "2", {bayes}}}'.encode(), "unknown_model"),
        (b"credit", b'{"version": "2"}', "wrong_type"),
        (b"credit", b'{"version": "2", "factory": "os:getcwd"}', "not_allowed"),
        (b"credit", b'{"version": "2", "model": {"class": "os.system", "params": {"command": "id"}}}', "not_allowed"),
        (b"credit", b'{"version": "2", "model": {"class": "river.tree.NoTree"}}', "unusable_model"),
        (b"credit", b'{"version": "2", "artefact": "../two.pkl", "sha256": "%s"}' % (b"0" * 64), "not_allowed"),
        (b"credit", b'{"version": "2", "artefact": "two.pkl", "sha256": "%s"}' % (b"0" * 64), "wrong_artefact"),
    ]
    produce(kafka_broker.bootstrap, topics.models, [(k, v, [("trace", b"1")]) for k, v, _ in bad], partition=0)
    produce(kafka_broker.bootstrap, topics.observations, [(b"credit", observation(i), []) for i in range(100)])
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(100 + len(bad), timeout_s=120)
        assert versions(worker) == {"credit": "1"}
        reasons = worker.metrics()["attributary_dead_letters_total"]
        deploy(worker, "credit", "--class", "river.naive_bayes.GaussianNB", "--version", "2")
        worker.wait_consumed(100 + len(bad) + 1, timeout_s=120)
        produce(kafka_broker.bootstrap, topics.observations, [(b"credit", observation(i), []) for i in range(100, 200)])
        wait_for("version 2 of credit", lambda: versions(worker) == {"credit": "2"})
        assert worker.stop() == 0
    letters = read_all(kafka_broker.bootstrap, topics.dead_letters)
    assert [(x.key, x.value, dict(x.headers)["attributary-dlq-reason"].decode()) for x in letters] == bad
    assert all(dict(x.headers)["attributary-dlq-topic"].decode() == topics.models for x in letters)
    of_models = {dict(at)["reason"]: n for at, n in reasons.items() if dict(at)["topic"] == topics.models and n}
    assert sum(of_models.values()) == len(bad)
    counters, offset = stored(config).control_checkpoints[0]
    assert (counters.consumed, counters.used, offset) == (len(bad) + 1, 1, len(bad))


def test_two_workers_each_take_the_deployments_of_their_own_models(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = configured(kafka_broker, tmp_path, partitions=4)
    topics = config.kafka.topics
    place = {"credit": 1, "fraud": 2}

    def send(begin: int, end: int) -> None:
        for model_id, number in place.items():
            records = [(model_id.encode(), observation(i), []) for i in range(begin, end)]
            produce(kafka_broker.bootstrap, topics.observations, records, partition=number)

    def shares() -> list[set[str]]:
        key = "attributary_records_consumed_total"
        return [
            {dict(at)["partition"] for at in worker.samples(key) if dict(at)["topic"] == topic}
            for topic in (topics.observations, topics.models)
            for worker in workers
        ]

    def consumed() -> int:
        return sum(worker.total("records_consumed_total") for worker in workers)

    send(0, 600)
    workers = [WorkerProcess(raw, tmp_path), WorkerProcess(raw, tmp_path)]
    with workers[0], workers[1]:
        wait_for("two partitions each", lambda: [len(share) for share in shares()] == [2] * 4, 120)
        first, second, control_first, control_second = shares()
        assert (control_first, control_second) == (first, second), "the same numbers of both topics"
        assert first | second == set("0123")
        wait_for("1200 records", lambda: consumed() == 1200)
        for model_id, number in place.items():
            deploy(workers[0], model_id, "--artefact", "two.pkl", "--version", "2", "--partition", str(number))
        wait_for("1202 records", lambda: consumed() == 1202)
        send(600, 900)
        wait_for("1802 records", lambda: consumed() == 1802)
        found = [versions(worker) for worker in workers]
        assert {**found[0], **found[1]} == {"credit": "2", "fraud": "2"}
        # One dies; its partitions, their state and the deployments that have not taken over come to the other.
        workers[0].kill()
        deploy(workers[1], "credit", "--class", "river.naive_bayes.GaussianNB", "--version", "3", "--partition", "1")
        deploy(workers[1], "fraud", "--class", "river.naive_bayes.GaussianNB", "--version", "3", "--partition", "2")
        send(900, 1000)
        wait_for("2004 records", lambda: consumed() == 2004, 120)
        # What had come before the other took over may have been handled by the first: the next ones surely not.
        send(1000, 1020)
        wait_for("2044 records", lambda: consumed() == 2044)
        wait_for("both third versions", lambda: versions(workers[1]) == {"credit": "3", "fraud": "3"})
        assert workers[1].stop() == 0
    check_equal(kafka_broker.bootstrap, config)

"""SASL and TLS on Apache Kafka: every command with the ACLs of docs/security.md, and what is said where it fails."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from click.testing import CliRunner
from faust.types import TP
from support.kafka import create_topics, produce, read_all
from support.secure_kafka import CANARY, USERS, Acl, SecureKafka, documented_acls
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.app import create_app
from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.secrets import MASK
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import BrokerMissingError
from attributary_agents.demo.local_broker import free_port
from attributary_agents.errors import AttributaryError, PreflightError
from attributary_agents.kafka.admin import with_admin
from attributary_agents.kafka.brokers import BrokerWatch
from attributary_agents.kafka.clients import client_options
from attributary_agents.kafka.topics import topic_specs
from attributary_agents.kafka.upstream import aiokafka_logs
from attributary_agents.worker.gaps import Gaps
from tests.agents.serve.webhooks.made import incident
from tests.integration.configs import logistic_config, observation
from tests.integration.serve.receiver import Receiver
from tests.integration.serve.telling_server import TellingServer

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 300
TOPIC_SETTINGS = {"cleanup.policy": "compact", "max.message.bytes": "20000000"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    try:
        started = SecureKafka(tmp_path_factory.mktemp("secure"))
        started.start()
    except BrokerMissingError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))  # as tests/conftest.py does
    with started:
        yield started


WAYS = ["SCRAM-SHA-512", "PLAIN", "certificate"]


class Deployment:
    """The commands as their users, and all that they print."""

    def __init__(self, broker: SecureKafka, way: str, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        self.said = ""
        protocol = "SSL" if way == "certificate" else "SASL_SSL"
        self.raw = logistic_config(broker.at(protocol))
        self.raw["log"] = {"level": "DEBUG"}
        self.raw["delivery"] = "exactly_once" if way == WAYS[1] else "at_least_once"
        for user in USERS:
            section = broker.mutual(user) if way == "certificate" else broker.sasl(user, way)
            (folder / f"{user}.yaml").write_text(yaml.safe_dump(self.as_user(section)))
        self.config = parse_config(self.raw)

    def as_user(self, security: dict[str, Any]) -> dict[str, Any]:
        return {**self.raw, "kafka": {**self.raw["kafka"], "security": security}}

    def run(self, user: str, *arguments: str) -> str:
        done = CliRunner().invoke(cli, [*arguments, "--config", str(self.folder / f"{user}.yaml")])
        self.said += done.output + repr(done.exception)
        assert done.exit_code == 0, (arguments, done.output, done.exception)
        return done.stdout

    def worker(self) -> WorkerProcess:
        return WorkerProcess(yaml.safe_load((self.folder / "worker.yaml").read_text()), self.folder)


@pytest.mark.parametrize("way", WAYS)
def test_the_whole_way_with_the_documented_acls(way: str, broker: SecureKafka, tmp_path: Path) -> None:
    deployment = Deployment(broker, way, tmp_path)
    config, topics = deployment.config, deployment.config.kafka.topics
    broker.allow(documented_acls(config.kafka.group))
    rows = [json.loads(observation(i)) for i in range(N)]
    data = tmp_path / "data.csv"
    data.write_text("a,b,c,y\n" + "".join(f"{r['x']['a']},{r['x']['b']},{r['x']['c']},{r['y']:d}\n" for r in rows))

    assert "created" in deployment.run("creator", "topics", "create")
    assert "broker: ok" in deployment.run("worker", "check")
    assert f"{N} observations sent" in deployment.run("producer", "produce", str(data))
    worker = deployment.worker()
    with worker:
        worker.wait_consumed(N, timeout_s=60)
        assert worker.total("model_observations_total") == N
        deploy = ["models", "deploy", "credit", "--class", "river.naive_bayes.GaussianNB", "--version", "2"]
        assert "is deployed" in deployment.run("deployer", *deploy)
        assert "deployed 2" in deployment.run("deployer", "models", "list")
        worker.wait_consumed(N + 1, timeout_s=60)  # it is made, and stored: a stop would leave it to the next owner
        with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/metrics", timeout=5) as answer:
            deployment.said += answer.read().decode()
        assert worker.stop() == 0
    if way == WAYS[0]:
        assert f"{N} observations sent" in deployment.run("producer", "produce", str(data))
        with worker:
            worker.wait_consumed(2 * N + 1, timeout_s=60)
            assert worker.total("model_observations_total") == 2 * N
            assert worker.total("model_versions_total") == 1
            assert worker.stop() == 0
        file = str(tmp_path / "credit.state")
        assert f"version 2, {2 * N} observations" in deployment.run("worker", "models", "export", "credit", file)
        assert "is reset" in deployment.run("worker", "models", "reset", "credit", "--yes")
        assert f"{2 * N} observations" in deployment.run("worker", "models", "import", "credit", file, "--yes")

    as_reader = parse_config(yaml.safe_load((tmp_path / "reader.yaml").read_text()))
    there = [record.value for record in read_all(broker.at("PLAINTEXT"), topics.importances)]
    assert asyncio.run(_read(as_reader, topics.importances, len(there))) == there
    for shown in (["config", "show"], ["config", "show", "--json"]):
        assert (MASK in deployment.run("worker", *shown)) == (way == "certificate")  # the others have a file
    deployment.said += worker.log.read_text()
    assert "attributary_records_consumed_total" in deployment.said
    assert "DEBUG" in deployment.said
    assert CANARY not in deployment.said


def test_a_worker_maps_a_source_with_the_documented_acls(broker: SecureKafka, tmp_path: Path) -> None:
    deployment = Deployment(broker, WAYS[0], tmp_path)
    name, topic = deployment.config.kafka.group, f"{deployment.config.kafka.group}-visits"
    source = {"topic": topic, "y": "y", "x": {"only": ["a", "b", "c"]}}
    deployment.raw["sources"] = {"visits": source}
    for user in USERS:
        (tmp_path / f"{user}.yaml").write_text(yaml.safe_dump(deployment.as_user(broker.sasl(user))))
    broker.allow(documented_acls(name))
    # The two more of the page: its topics are not ours.
    broker.allow(
        [Acl("worker", "topic", topic, ("Read",)), Acl("worker", "topic", f"{name}.observations.v1", ("Write",))]
    )
    create_topics(broker.at("PLAINTEXT"), {topic: 2})
    rows = [json.loads(observation(i)) for i in range(N)]
    values = [json.dumps({**row["x"], "y": row["y"]}).encode() for row in rows]
    produce(broker.at("PLAINTEXT"), topic, [(None, value, []) for value in values])

    assert f"created {name}.sources.v1" in deployment.run("creator", "topics", "create")
    assert "broker: ok" in deployment.run("worker", "check")
    worker = deployment.worker()
    with worker:
        worker.wait_consumed(N, timeout_s=60)
        # Positions are committed a second after what was sent.
        wait_for("positions", lambda: deployment.run("worker", "sources", "status").count("\t0 to map") == 2, 60)
        assert worker.stop() == 0
    assert "do not let" not in worker.log.read_text()


def test_the_page_s_user_reads_and_tells_webhooks_with_the_documented_acls(broker: SecureKafka, tmp_path: Path) -> None:
    deployment = Deployment(broker, WAYS[0], tmp_path)
    name, topic = deployment.config.kafka.group, deployment.config.kafka.topics.incidents
    broker.allow(documented_acls(name))
    deployment.run("creator", "topics", "create")
    with Receiver() as receiver:
        path = tmp_path / "page.yaml"
        raw = yaml.safe_load(path.read_text())
        serve = {"store": str(tmp_path / "page.sqlite"), "webhooks": {"ops": {"url": receiver.url}}}
        path.write_text(yaml.safe_dump({**raw, "serve": serve}))
        server = TellingServer(path, free_port())
        try:
            wait_for("all is read", server.is_ready)
            value = json.dumps(incident(model_id="credit")).encode()

            def is_told() -> bool:  # a new group begins at the end: what comes before it has begun is not told
                produce(broker.at("PLAINTEXT"), topic, [(b"credit", value, [])])
                return bool(receiver.taken)

            wait_for("an event", is_told)
        finally:
            assert server.stop() == 0
    said = path.with_suffix(".log").read_text()
    assert "do not let" not in said
    assert CANARY not in said


async def _read(config: Config, topic: str, n: int) -> list[bytes | None]:
    consumer = AIOKafkaConsumer(topic, **client_options(config.kafka), group_id="readers", auto_offset_reset="earliest")
    await consumer.start()
    try:
        async with asyncio.timeout(60):
            return [(await consumer.getone()).value for _ in range(n)]
    finally:
        await consumer.stop()


def test_the_consumer_that_looks_into_a_gap_connects_too(broker: SecureKafka) -> None:
    raw = logistic_config(broker.at("SASL_SSL"))
    raw["kafka"]["security"] = broker.sasl()
    config = parse_config(raw)
    topic = config.kafka.topics.observations
    create_topics(broker.at("PLAINTEXT"), {topic: 1})
    produce(broker.at("PLAINTEXT"), topic, [(b"credit", observation(i), []) for i in range(5)])
    broker.allow([acl for acl in documented_acls(config.kafka.group) if acl.user == "worker"])
    assert asyncio.run(Gaps(create_app(config).app, config)._first_offset(TP(topic, 0), 3, 4)) == 3


FAULTS = [
    # where, what is other than in a section that works there, what is said
    ("SASL_SSL", {"password": f"wrong-{CANARY}", "password_file": None}, "refuses the user worker (SCRAM-SHA-512)"),
    (
        "SASL_SSL",
        {"password": f"wrong-{CANARY}", "password_file": None, "mechanism": "PLAIN"},
        "refuses the user worker (PLAIN): check kafka.security.username and password",
    ),
    ("SASL_SSL", {"username": "mallory"}, "refuses the user mallory"),
    (
        "SASL_SSL",
        {"ca_file": None},
        "is not trusted (unable to get local issuer certificate): set kafka.security.ca_fi",
    ),
    ("SASL_SSL", {"ca_file": "other-ca.pem"}, "set kafka.security.ca_file to the certificate of the CA"),
    ("localhost", {}, "is for another name (Hostname mismatch, certificate is not valid for 'localhost'.)"),
    ("SASL_SSL", None, "this port may not speak PLAINTEXT; set kafka.security.protocol"),
    ("SSL", None, "this port may not speak PLAINTEXT; set kafka.security.protocol"),
    ("SASL_PLAINTEXT", None, "this port may not speak PLAINTEXT; set kafka.security.protocol"),
    ("PLAINTEXT", {}, "this port may not speak SASL_SSL; set kafka.security.protocol"),
    ("SSL", {}, "refuses a client without a certificate"),
    ("SSL", {"cert_file": "stranger-both.pem"}, "refuses our certificate, "),
    ("SASL_PLAINTEXT", {"protocol": "SASL_PLAINTEXT", "ca_file": None}, "does not offer SCRAM-SHA-512 here: check"),
    (
        "PLAINTEXT",
        {"protocol": "SASL_PLAINTEXT", "ca_file": None},
        "asks for no user here: set kafka.security.protocol t",
    ),
]


@pytest.mark.parametrize(("where", "changed", "said"), FAULTS)
def test_what_is_wrong_is_said_in_one_line(
    where: str, changed: dict[str, Any] | None, said: str, broker: SecureKafka, tmp_path: Path
) -> None:
    address = broker.at("SASL_SSL", where) if where == "localhost" else broker.at(where)
    raw = logistic_config(address)
    if changed is not None:
        section = {**broker.sasl(), **changed}
        for name in ("ca_file", "cert_file"):
            if changed.get(name):
                section[name] = str(broker.files / changed[name])
        raw["kafka"]["security"] = {name: value for name, value in section.items() if value is not None}
    with pytest.raises(PreflightError) as caught:
        with_admin(parse_config(raw).kafka, AIOKafkaAdminClient.list_topics)
    message = str(caught.value)
    assert said in message
    assert address in message
    assert "\n" not in message
    assert CANARY not in message


def test_a_wrong_password_is_one_line_and_exit_code_2(broker: SecureKafka, tmp_path: Path) -> None:
    raw = logistic_config(broker.at("SASL_SSL"))
    raw["kafka"]["security"] = {**broker.sasl(), "password": f"wrong-{CANARY}"}
    del raw["kafka"]["security"]["password_file"]
    with WorkerProcess(raw, tmp_path) as worker:
        assert worker.wait(60) == 2
        assert "refuses the user worker" in worker.log_tail
        assert len(worker.log_tail.splitlines()) == 1
        assert CANARY not in worker.log_tail


def refused(broker: SecureKafka, folder: Path, user: str, raw: dict[str, Any], *arguments: str) -> str:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**raw, "kafka": {**raw["kafka"], "security": broker.sasl(user)}}))
    done = CliRunner().invoke(cli, [*arguments, "--config", str(path)])
    if arguments == ("check",):  # it rehearses the models first, and says what came out
        assert done.exit_code == 2, (done.output, done.exception)
        return done.stderr
    assert isinstance(done.exception, AttributaryError), (done.output, done.exception)
    assert done.output == ""
    return str(done.exception)


def test_a_user_that_may_not_is_told_what(
    broker: SecureKafka, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    raw = logistic_config(broker.at("SASL_SSL"))
    config = parse_config(raw)
    topics = config.kafka.topics
    data = tmp_path / "data.csv"
    data.write_text("a,b,c,y\n1,2,3,True\n")
    deploy = ["models", "deploy", "credit", "--class", "river.naive_bayes.GaussianNB", "--version", "2"]

    message = refused(broker, tmp_path, "nobody", raw, "topics", "create")
    assert f"refused to create {topics.observations}: Authorization failed" in message
    create_topics(broker.at("PLAINTEXT"), {spec.name: 1 for spec in topic_specs(config)}, TOPIC_SETTINGS)
    assert "or let this user describe them" in refused(broker, tmp_path, "nobody", raw, "check")
    names = [spec.name for spec in topic_specs(config)]
    broker.allow([Acl("nobody", "topic", name, ("Describe",)) for name in names])
    for arguments, what in [(["produce", str(data)], topics.observations), (deploy, topics.models)]:
        message = refused(broker, tmp_path, "nobody", raw, *arguments)
        assert message.startswith(what)
        assert "do not let the user nobody do this" in message
    # A worker would wait for ever.
    for command in ("check", "run"):
        message = refused(broker, tmp_path, "nobody", raw, command)
        assert f"GroupAuthorizationFailedError {config.kafka.group}): grant it" in message
    assert caplog.text == ""


def test_the_log_of_the_client_does_not_have_the_password(
    broker: SecureKafka, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiokafka_logs, "BROKERS", BrokerWatch())  # in this process another test's broker may be away
    raw = logistic_config(broker.at("SASL_SSL"))
    raw["kafka"]["security"] = broker.sasl(mechanism="PLAIN")

    async def connect() -> None:
        admin = AIOKafkaAdminClient(**client_options(parse_config(raw).kafka))
        await admin.start()
        await admin.close()

    with caplog.at_level(logging.DEBUG, "aiokafka"):
        asyncio.run(connect())
    assert "SaslHandShakeRequest" in caplog.text
    assert CANARY not in caplog.text

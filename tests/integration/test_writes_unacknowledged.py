"""A worker on a cluster of three nodes of which two are killed: the third answers, and acknowledges no write."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.cluster import KafkaCluster
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import BrokerMissingError
from attributary_agents.errors import PreflightError
from attributary_agents.kafka.brokers import NOT_READY_AFTER_S
from attributary_agents.kafka.topics import create_topics
from tests.integration.outages import OBSERVATIONS, Probe, records, settings

pytestmark = [pytest.mark.long, pytest.mark.kafka]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three nodes of this module."""
    started = KafkaCluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.start(*started.nodes)
    except BrokerMissingError as error:
        # As with the shared broker: under CI a broken pipeline, elsewhere somebody without Java.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with started:
        yield started


def test_writes_that_no_broker_acknowledges_are_seen_and_nothing_is_lost(cluster: KafkaCluster, tmp_path: Path) -> None:
    raw = settings(cluster.bootstrap)
    raw["kafka"] |= {"brokers": cluster.brokers, "replication_factor": 3}
    config = parse_config(raw)
    create_topics(config)
    topic = config.kafka.topics.observations
    with WorkerProcess(raw, tmp_path) as worker, Probe(worker.port) as probe:
        wait_for("the worker is ready", worker.is_ready, 120)
        stays = cluster.leader(topic, 0)  # observations come from it
        gone = [number for number in cluster.nodes if number != stays]
        produce(cluster.bootstrap, topic, records(0, OBSERVATIONS))
        worker.wait_consumed(1, timeout_s=60)
        for number in gone:
            cluster.kill(number)
        wait_for("the worker says that it is not ready", lambda: probe.ask("/readyz").status == 503, 60)
        listed = CliRunner().invoke(cli, ["topics", "list", "-c", str(worker.config_path)])
        # The nodes that are away are controllers, too: who is in sync is not known without them.
        assert isinstance(listed.exception, PreflightError), "the command that the log names shows what is wrong"
        assert "no controller (1 of 3 brokers answers" in str(listed.exception)
        assert "in-sync=?" in listed.output
        said, metrics = probe.ask("/readyz").text, worker.metrics()
        assert re.match(r"not ready: brokers have not acknowledged writes for 3\d s \(.*away.*\[0\]", said), said
        assert metrics["attributary_broker_up"][()] == 1
        assert metrics["attributary_write_unacknowledged_seconds"][()] >= NOT_READY_AFTER_S
        cluster.start(*gone)
        wait_for("the worker is ready again", worker.is_ready, 60)
        produce(cluster.bootstrap, topic, records(OBSERVATIONS, OBSERVATIONS))
        wait_for("nothing is lost", lambda: worker.total("model_observations_total") == 2 * OBSERVATIONS, 60)
        assert worker.stop() == 0
    lines = worker.log.read_text().splitlines()
    about_writes = [line.split("kafka.brokers: ")[1] for line in lines if "kafka.brokers: brokers " in line]
    assert [line[:36] for line in about_writes] == [
        "brokers answer, and have not acknowl",
        "brokers acknowledge writes again, af",
    ]
    assert not [line for line in lines if " ERROR " in line]
    assert "all of them are stored" in lines[-1]
    assert {answer.text for answer in probe.of("/livez") if answer.status} == {"alive"}

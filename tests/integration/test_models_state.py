"""A model's state is exported, imported and deleted on Apache Kafka, and a worker goes on from what is there then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from support.kafka import produce, read_all
from support.states import stored
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.errors import AttributaryError
from attributary_agents.kafka.topics import create_topics
from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.state.admin import read_records, store_of
from attributary_agents.state.codec import decode_state, encode_state
from attributary_agents.state.deployment_log import DeploymentLog, encode_log
from attributary_agents.state.files import read_file
from attributary_agents.state.names import control_key
from attributary_agents.state.owners import Owners
from attributary_agents.state.records import head_key
from attributary_agents.state.seal import Seal
from attributary_agents.state.writing import changelog_writer
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.integration.configs import logistic_config, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 300
FAILED = {97: "model_failed", 99: "prediction_not_finite"}
KEY = "a key of thirty-two characters and more"
MODELS = ("credit", "fraud")


class Group:
    """A group with the commands and a worker; half of the observations are of each model."""

    def __init__(self, broker: Broker, folder: Path, **kafka: Any) -> None:
        raw = logistic_config(broker.bootstrap, models=MODELS)
        raw["kafka"] |= kafka
        raw["state"] = {"key": KEY}
        self.config = parse_config(raw)
        self.folder = folder
        self.path = folder / f"{self.config.kafka.group}.yaml"
        self.path.write_text(yaml.safe_dump(raw))
        self.worker = WorkerProcess(raw, folder)
        create_topics(self.config)

    def send(self, begin: int, end: int) -> None:
        records = [(MODELS[i % 2].encode(), observation(i, flipped=i > 400), []) for i in range(begin, end)]
        produce(self.config.kafka.brokers[0], self.config.kafka.topics.observations, records, partition=0)

    def work(self, n: int) -> None:
        """Run until n observations of all time are handled."""
        self.worker.run_until(n)

    def models(self, *arguments: str) -> Result:
        return CliRunner().invoke(cli, ["models", *arguments, "--config", str(self.path)])

    def done(self, *arguments: str) -> Any:
        result = self.models(*arguments, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
        return json.loads(result.stdout)

    def refused(self, *arguments: str) -> str:
        result = self.models(*arguments)
        assert isinstance(result.exception, AttributaryError), result.output
        assert "\n" not in str(result.exception)
        return str(result.exception)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("states")


@pytest.fixture(scope="module")
def group(kafka_broker: Broker, folder: Path) -> Iterator[Group]:
    """N observations are handled, the worker has stopped, `credit.state` is exported; what else works while it ran."""
    group = Group(kafka_broker, folder)
    assert "it has no checkpoint yet" in group.refused("export", "credit", str(folder / "credit.state"))
    group.send(0, N)
    with group.worker:
        group.worker.wait_consumed(N, timeout_s=120)
        for command in (["reset", "credit"], ["reset", "gone"]):
            assert f"a worker of the group {group.config.kafka.group} run" in group.refused(*command, "--yes")
        group.worker.wait_consumed(N, timeout_s=120)
        while (running := group.models("export", "credit", str(folder / "running.state"))).exit_code:
            assert "no checkpoint yet" in str(running.exception)
        assert "credit, version 1," in running.stdout
        assert "a worker" in group.refused("import", "credit", str(folder / "running.state"), "--yes")
        assert group.worker.stop() == 0
    said = group.done("export", "credit", str(folder / "credit.state"))
    assert (said["observations"], said["partition"], said["offset"]) == (N // 2, 0, N - 2)
    return group


def replayed(config: Config, blob: bytes | None, begin: int) -> tuple[Partition, list[bytes]]:
    """What a partition in this process makes of the observations from an offset on, and credit's importances."""
    topic = config.kafka.topics.observations
    partition = Partition(topic, 0, config, {b"credit": blob}.get)
    partition.offset = begin - 1
    events = []
    for r in read_all(config.kafka.brokers[0], topic)[begin:]:
        for out in partition.handle(Record(topic, 0, r.offset, r.timestamp, r.key, r.value, [])):
            if (out.topic, out.key) == (config.kafka.topics.importances, b"credit"):
                events.append(out.value)
    return partition, events


def learnt(state: ModelState) -> tuple[Any, ...]:
    weights = [state.model["LogisticRegression"].weights, state.model["LogisticRegression"].intercept]
    explained = {name: (one.importance, one.std_error) for name, one in state.explainers.items()}
    return json.dumps(weights, sort_keys=True), explained, state.n_observations, state.offset


def test_a_model_is_reset_and_imported_and_a_damaged_one_healed(group: Group, folder: Path) -> None:
    config, file = group.config, str(folder / "credit.state")
    bootstrap = config.kafka.brokers[0]
    epoch, _ = asyncio.run(read_records(config)).latest(0, b"fraud")
    produce(bootstrap, config.kafka.changelog, [(head_key(b"fraud", epoch), b"garbage", [])], partition=0)
    assert "is no head of a state" in group.refused("export", "fraud", str(folder / "fraud.state"))
    assert group.done("reset", "credit", "--yes")["partitions"] == [0]
    assert group.done("reset", "credit", "--yes")["partitions"] == []

    group.send(N, 2 * N)
    with group.worker:  # credit begins afresh, fraud is refused
        group.worker.wait_consumed(2 * N, timeout_s=120)
        assert group.worker.total("models_refused") == 1
        assert group.worker.stop() == 0
    dead = read_all(bootstrap, config.kafka.topics.dead_letters)
    assert {(r.key, dict(r.headers)["attributary-dlq-reason"]) for r in dead} == {(b"fraud", b"damaged_state")}
    assert len(dead) == N // 2
    assert group.done("reset", "fraud", "--yes")["partitions"] == [0]
    afresh, _ = replayed(config, None, N)
    assert learnt(stored(config).models["credit"]) == learnt(afresh.models["credit"])
    assert afresh.models["credit"].n_observations == N // 2

    said = group.done("import", "credit", file, "--yes")
    assert said["offset"] == 2 * N - 1  # the group's; the file's is N - 2
    assert (said["n_observations"], said["replaces"]) == (N // 2, N // 2)
    published = len(read_all(bootstrap, config.kafka.topics.importances))
    group.send(2 * N, 3 * N)
    group.work(3 * N)
    blob = read_file(Path(file), Seal(KEY.encode())).blob
    oracle, events = replayed(config, blob, 2 * N)
    found = stored(config)
    for model_id, n in (("credit", N), ("fraud", N // 2)):
        assert learnt(found.models[model_id]) == learnt(oracle.models[model_id])
        assert found.models[model_id].n_observations == n
    importances = read_all(bootstrap, config.kafka.topics.importances)[published:]
    assert [r.value for r in importances if r.key == b"credit"] == events != []
    counters, offset = found.checkpoints[0]
    assert (counters.consumed, counters.used, offset) == (3 * N, 3 * N - N // 2, 3 * N - 1)


def test_another_group_with_observations_of_its_own_goes_on_from_the_file(
    group: Group, kafka_broker: Broker, folder: Path
) -> None:
    file = str(folder / "credit.state")
    other = Group(kafka_broker, folder)
    assert "say it with --partition" in other.refused("import", "credit", file, "--yes")
    assert "--as-other" in other.refused("import", "fraud", file, "--yes", "--partition", "0")
    assert other.done("import", "credit", file, "--yes", "--partition", "0")["offset"] == -1
    assert other.done("import", "fraud", file, "--yes", "--partition", "0", "--as-other")["version"] == "1"
    other.send(0, N)
    # At the file's offset there is an observation of credit now, but another one.
    assert other.done("import", "credit", file, "--yes")["offset"] == -1
    other.work(N)
    state = decode_state("credit", other.config.models["credit"], read_file(Path(file), Seal(KEY.encode())).blob)
    state.offset = -1  # the file's is of the other topic
    oracle, events = replayed(other.config, encode_state(state), 0)
    found = stored(other.config).models
    assert learnt(found["credit"]) == learnt(oracle.models["credit"])
    assert (found["credit"].n_observations, found["fraud"].n_observations) == (N, N)
    importances = read_all(other.config.kafka.brokers[0], other.config.kafka.topics.importances)
    assert [r.value for r in importances if r.key == b"credit"] == events != []


def test_another_group_on_the_same_observations_goes_on_behind_those_in_the_file(
    group: Group, kafka_broker: Broker, folder: Path
) -> None:
    other = Group(kafka_broker, folder, topic_prefix=group.config.kafka.topic_prefix)
    config, file = other.config, str(folder / "credit.state")
    said = other.done("import", "credit", file, "--yes")
    assert (said["partition"], said["offset"], said["replaces"]) == (0, N - 2, None)
    assert other.done("import", "credit", file, "--yes")["replaces"] == N // 2

    async def damaged() -> None:
        records = await read_records(config)
        async with changelog_writer(config) as send:
            await send(0, head_key(b"credit", Owners(records, 0, Seal()).last), b"garbage")
            await store_of(config, records, 0, send).put(control_key("credit", 0), encode_log(DeploymentLog(7)))

    asyncio.run(damaged())
    assert other.done("import", "credit", file, "--yes")["replaces"] is None
    assert stored(config).models["credit"].current.deployed == 7  # what was deployed before does not replace it
    state = new_state("fraud", config.models["fraud"])
    state.partition, state.offset, state.failed_offsets, state.n_observations = 0, 99, FAILED, 50

    async def beyond_the_checkpoint() -> None:
        async with changelog_writer(config) as send:
            await store_of(config, await read_records(config), 0, send).put(b"fraud", encode_state(state))

    asyncio.run(beyond_the_checkpoint())
    assert other.done("import", "fraud", file, "--yes", "--as-other")["offset"] == 99
    assert stored(config).models["fraud"].failed_offsets == FAILED
    assert "There is no terminal to ask on: say --yes" in other.refused("reset", "credit")
    assert "less than kafka.partitions" in other.refused("import", "credit", file, "--yes", "--partition", "1")
    assert other.done("reset", "credit", "--yes")["partitions"] == [0]
    # Of the model and its deployments nothing is left.
    left = {r.key: r.value for r in read_all(config.kafka.brokers[0], config.kafka.changelog) if b"credit" in r.key}
    assert set(left.values()) == {None}
    assert "nothing of gone; configured are credit, fraud" in other.refused("reset", "gone", "--yes")

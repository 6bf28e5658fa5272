"""New versions of models and crashes: wherever a worker dies, each version takes over at the same observation.

A small stand-in for the worker: two topics of one partition that grow, a table that survives, and an owner of the
partition that can be killed between any two writes. What `Worker` does with Faust is tested on Apache Kafka.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.state.checkpoints import decode_checkpoint
from attributary_agents.state.names import checkpoint_key, control_checkpoint_key
from attributary_agents.worker.deployments import PartitionControl
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Outgoing, Record
from tests.agents.stand_ins import CONTRARY_FACTORY, FACTORY, MODELS, TOPIC, TOUCHY_FACTORY, observations
from tests.delivery.remains import Log, Storing, stored_models

pytestmark = pytest.mark.long

SETTINGS: dict[str, Any] = {
    "factory": FACTORY,
    "alpha": 0.1,
    "explainers": {"pfi": {"n_samples": 1}},
    "change": {
        "window": 20,
        "threshold": 0.0,
        "detector": "page_hinkley",
        "detector_params": {"min_instances": 1, "threshold": 0.4, "delta": 0.0, "mode": "both"},
    },
    "publish": {"every": 5, "material_shift": 0.3, "min_observations": 4, "reference_after": 8},
}
BAYES = {"model": {"class": "river.naive_bayes.GaussianNB"}}
TREE = {"model": {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 5}}}
COUNTING = {"factory": FACTORY}
CONTRARY = {"factory": CONTRARY_FACTORY}


@cache
def config() -> Config:
    allowed = ["river.", FACTORY, CONTRARY_FACTORY, TOUCHY_FACTORY]
    return parse_config({"models": dict.fromkeys("mnl", SETTINGS), "control": {"allowed": allowed}})


def observation(offset: int, model_id: str, value: bytes) -> Record:
    return Record(TOPIC, 0, offset, 1_700_000_000_000 + offset, model_id.encode(), value)


def control(offset: int, model_id: str, version: str, spec: dict[str, Any]) -> Record:
    value = json.dumps({"version": version, **spec}).encode()
    return Record(MODELS, 0, offset, 1_700_000_100_000 + offset, model_id.encode(), value)


# After so many observations: whose version, and what it is.
CONTROLS: list[tuple[int, str, str, dict[str, Any]]] = [
    (0, "m", "0", COUNTING),  # before its first observation
    (14, "m", "2", CONTRARY),
    (14, "n", "2", TREE),  # replaced before it could be compared
    (19, "n", "3", {"model": {"class": "river.tree.NoSuchTree"}}),  # a dead letter
    (24, "m", "2", CONTRARY),  # as it is: ignored
    (27, "m", "3", TREE),  # of two before its next observation the later one wins
    (27, "m", "4", COUNTING),
    (29, "m", "5", CONTRARY),
    (34, "n", "4", BAYES),  # only observations of the other model come in between
    (35, "n", "5", COUNTING),
    (38, "l", "2", BAYES),  # never has an observation
    (40, "m", "1", COUNTING),
]


def script() -> list[Record]:
    """104 observations of two models, and the control records between them, in the order in which they were sent."""
    steps: list[Record] = []
    waiting = list(enumerate(CONTROLS))
    for i, one in enumerate(observations(104, flip_at=75)):
        while waiting and waiting[0][1][0] <= i:
            offset, (_, *what) = waiting.pop(0)
            steps.append(control(offset, *what))
        model_id = "n" if i % 3 == 0 else "m"
        steps.append(observation(i, model_id, json.dumps({"x": one.x, "y": one.y}).encode()))
    assert not waiting
    return steps


STEPS = script()


class Cluster(Log):
    """What survives a worker: the table's changelog, committed offsets, and what has been sent."""

    def __init__(self) -> None:
        super().__init__()
        self.table: dict[bytes, bytes] = {}
        self.committed = {TOPIC: 0, MODELS: 0}

    def copy(self) -> Cluster:
        """What is there at this moment, to go on from while the worker that has written it goes on, too."""
        copy = Cluster()
        copy.by_id, copy.table, copy.committed = dict(self.by_id), dict(self.table), dict(self.committed)
        return copy


class Owner:
    """A worker that holds the partition, from what the cluster has."""

    def __init__(self, cluster: Cluster, backlog_end: int) -> None:
        self.cluster = cluster
        self.memory = dict(cluster.table)
        self.partition = Partition(TOPIC, 0, config(), self.memory.get)
        self.control = PartitionControl(MODELS, self.partition, self.memory.get)
        self.backlog_end = backlog_end
        self.before_writes: list[Cluster] = []
        self.storing = Storing(self.partition, self.write, self.commit)

    def write(self, key: bytes, value: bytes) -> None:
        self.before_writes.append(self.cluster.copy())
        self.memory[key] = value
        self.cluster.table[key] = value

    def handle(self, record: Record) -> None:
        if record.topic == TOPIC:
            self.cluster.send(self.partition.handle(record))
            return
        outcome = self.control.take(record, self.backlog_end)
        self.cluster.send(outcome.outgoing)
        for key, value in outcome.writes:
            self.write(key, value)
        self.cluster.committed[MODELS] = record.offset + 1

    def commit(self, offset: int) -> None:
        self.cluster.committed[TOPIC] = offset + 1

    def checkpoint(self) -> None:
        self.storing.checkpoint()


def outcome(cluster: Cluster) -> dict[str, Any]:
    table = cluster.table
    return {
        "sent": cluster.by_id,
        "checkpoints": [decode_checkpoint(table.get(key(0))) for key in (checkpoint_key, control_checkpoint_key)],
        "committed": cluster.committed,
        "models": stored_models(table, config()),
    }


def play(owner: Owner, steps: list[Record], checkpoint_every: int) -> None:
    """Handle the steps, with a checkpoint after every so many observations and at the end."""
    for record in steps:
        owner.handle(record)
        if record.topic == TOPIC and (record.offset + 1) % checkpoint_every == 0:
            owner.checkpoint()


def finish(owner: Owner, n: int) -> dict[str, Any]:
    """Handle the steps after the first n, and store; what there is then."""
    play(owner, STEPS[n:], 1000)
    owner.checkpoint()
    return outcome(owner.cluster)


def successor(cluster: Cluster, steps: list[Record], order: str, kind: type[Owner] = Owner) -> Owner:
    """The next owner, with all of these steps that has not been committed, delivered again.

    Two topics have no order between them.
    """
    again = {t: [r for r in steps if r.topic == t and r.offset >= cluster.committed[t]] for t in (TOPIC, MODELS)}
    half = {"control first": 0, "control last": len(again[TOPIC]), "control between": len(again[TOPIC]) // 2}[order]
    owner = kind(cluster, backlog_end=sum(record.topic == TOPIC for record in steps) - 1)
    for record in [*again[TOPIC][:half], *again[MODELS], *again[TOPIC][half:]]:
        owner.handle(record)
    return owner


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    return finish(Owner(Cluster(), backlog_end=-1), 0)


def incidents(sent: dict[tuple[str, str], Outgoing]) -> list[dict[str, Any]]:
    found = [json.loads(one.value or b"") for (topic, _), one in sent.items() if topic == "attributary.incidents.v1"]
    return sorted(found, key=lambda event: event["source"]["offset"])


def test_what_is_compared_holds_every_kind_of_control_record(undisturbed: dict[str, Any]) -> None:
    assert max(n for n, one in enumerate(STEPS, 1) if one.topic == MODELS) < BEHIND_THE_LAST_CONTROL
    assert len(AT_EXPLANATIONS) == 6
    sent = incidents(undisturbed["sent"])
    # Where each takes over: the first observation of its model after the record; n has those divisible by 3.
    begun = [(e["model_id"], e["model_version"], e["source"]["offset"]) for e in sent if e["revision"] == 1]
    assert begun == [("m", "2", 14), ("n", "2", 15), ("m", "4", 28), ("m", "5", 29), ("n", "5", 36), ("m", "1", 40)]
    assert {e["what"] for e in sent} == {"version"}
    ends = [(e["model_id"], e["reason"], e["source"]["offset"]) for e in sent if e["revision"] == 2]
    assert ends == [
        ("m", "replaced", 28),
        ("m", "replaced", 29),
        ("n", "replaced", 36),
        ("m", "replaced", 40),
        ("m", "confirmed", 70),
        ("n", "confirmed", 96),
    ]
    compared = [e["explanation"] for e in sent if e["reason"] == "confirmed"]
    assert [(e["model_version_before"], e["model_version"]) for e in compared] == [("5", "1"), ("2", "5")]
    assert any(one["watch"] == "change" for event in sent for one in event["evidence"])
    assert set(undisturbed["models"]) == {"m", "n"}, "the third model never has an observation"
    states = undisturbed["models"]
    assert (states["m"]["version"], states["n"]["version"]) == ("1", "5")
    assert states["n"]["versions"] == {"explained": 1, "unexplained": 1, "refused": 0}
    (counters, offset) = undisturbed["checkpoints"][1]
    assert (offset, counters.consumed, counters.used) == (len(CONTROLS) - 1, len(CONTROLS), len(CONTROLS) - 1)
    assert counters.dead_letters["unusable_model"] == 1
    sent = [json.loads(one.value or b"") for (t, _), one in undisturbed["sent"].items() if "importances" in t]
    assert {event["model_version"] for event in sent if event["model_id"] == "m"} >= {"2", "5"}


AT_EXPLANATIONS = tuple(
    n for n, one in enumerate(STEPS, 1) if one.topic == TOPIC and one.offset in (69, 70, 71, 95, 96, 97)
)
BEHIND_THE_LAST_CONTROL = 60


def is_worth_a_kill(n: int, stride: int) -> bool:
    """Closely while deployments come and are compared, and where what they changed is told; elsewhere now and then."""
    return n % (stride if n < BEHIND_THE_LAST_CONTROL else 8) == 1 or n in AT_EXPLANATIONS or n == len(STEPS)


@pytest.mark.parametrize("order", ["control first", "control last", "control between"])
@pytest.mark.parametrize(("checkpoint_every", "stride"), [(7, 3), (1000, 2)])
def test_a_kill_after_any_step_is_invisible(
    checkpoint_every: int, stride: int, order: str, undisturbed: dict[str, Any]
) -> None:
    cluster = Cluster()
    owner = Owner(cluster, backlog_end=-1)
    for n in range(len(STEPS) + 1):
        play(owner, STEPS[max(n - 1, 0) : n], checkpoint_every)
        if n == 0 or is_worth_a_kill(n, stride):
            assert finish(successor(cluster.copy(), STEPS[:n], order), n) == undisturbed, n


@pytest.mark.parametrize(("checkpoint_every", "order"), [(9, "control first"), (1000, "control last")])
def test_a_kill_before_every_write_is_invisible(checkpoint_every: int, order: str, undisturbed: dict[str, Any]) -> None:
    owner = Owner(Cluster(), backlog_end=-1)
    writes = 0
    for n in range(1, len(STEPS) + 1):
        play(owner, STEPS[n - 1 : n], checkpoint_every)
        for cluster in owner.before_writes:
            assert finish(successor(cluster, STEPS[:n], order), n) == undisturbed, writes
            writes += 1
        owner.before_writes.clear()
    assert writes > 2 * len(CONTROLS) - 3


@pytest.mark.parametrize("order", ["control first", "control last"])
@pytest.mark.parametrize("every", [1, 3, 8])
def test_a_kill_between_the_slices_of_a_checkpoint_is_invisible(
    every: int, order: str, undisturbed: dict[str, Any]
) -> None:
    cluster = Cluster()
    owner = Owner(cluster, backlog_end=-1)
    for n, record in enumerate(STEPS, 1):
        owner.handle(record)
        if n % every == 0:
            owner.storing.store_slice()
        if is_worth_a_kill(n, 2):
            assert finish(successor(cluster.copy(), STEPS[:n], order), n) == undisturbed, n


def test_a_second_kill_during_the_repetition_is_invisible(undisturbed: dict[str, Any]) -> None:
    for n in range(10, len(STEPS), 9):
        cluster = Cluster()
        play(Owner(cluster, backlog_end=-1), STEPS[:n], checkpoint_every=13)
        for order in ("control last", "control between", "control first"):
            successor(cluster, STEPS[:n], order)  # dies having repeated everything, without a checkpoint
        assert finish(successor(cluster, STEPS[:n], "control last"), n) == undisturbed, n


def test_the_log_does_not_grow_with_the_number_of_deployments() -> None:
    cluster = Cluster()
    owner = Owner(cluster, backlog_end=-1)
    value = json.dumps({"x": {"a": 1.0, "b": 1.0}, "y": True}).encode()
    largest, control_offset = 0, 0
    for i in range(60):
        owner.handle(observation(i, "m" if i % 2 else "n", value))
        for _ in range(3):
            owner.handle(control(control_offset, "m", f"v{control_offset}", BAYES))
            control_offset += 1
        if i % 10 == 9:
            owner.checkpoint()
        largest = max(largest, len(owner.partition.models.log("m").entries))
    assert largest <= 10 + 2, "one per observation of the model since the checkpoint"
    assert owner.partition.models["m"].version == f"v{control_offset - 4}"


def test_the_log_of_an_idle_model_holds_one_deployment() -> None:
    owner = Owner(Cluster(), backlog_end=-1)
    value = json.dumps({"x": {"a": 1.0, "b": 1.0}, "y": True}).encode()
    for i in range(20):
        owner.handle(observation(i, "n", value))
        owner.handle(control(i, "m", f"v{i}", BAYES))
        assert [entry.version for entry in owner.partition.models.log("m").entries] == [f"v{i}"]

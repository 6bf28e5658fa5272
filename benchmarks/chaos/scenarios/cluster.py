"""Three nodes, of which those are killed that the work hangs on, while observations keep coming."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from support.cluster import KafkaCluster

from benchmarks.chaos.lab.brokers import NODES
from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.probe import Probe
from benchmarks.chaos.lab.workload import SHORT_DRIFT_AT, observations, raw_config

_OFFSETS = "__consumer_offsets"


@dataclass(frozen=True)
class Loss:
    """Which nodes are killed, whether the others are enough to go on, and whether this is done in short, too."""

    what: str
    nodes: Callable[[KafkaCluster, Fleet], list[int]]
    goes_on: bool = True
    in_short: bool = True


LOSSES = (
    Loss("the leader of observations[0]", lambda cluster, fleet: [_leader(cluster, fleet, "observations")]),
    Loss("the group's coordinator", lambda cluster, fleet: [cluster.coordinator(fleet.config.kafka.group)]),
    # In short `transactions` does it, and with more at stake: a transaction is open.
    Loss("the leader of changelog[0]", lambda cluster, fleet: [_leader(cluster, fleet, "changelog")], in_short=False),
    Loss("two of three nodes", lambda cluster, _fleet: list(cluster.nodes)[:2], goes_on=False),
)


def run(lab: Lab) -> None:
    """Of three nodes those are killed that lead observations, the group, the changelog, then two; all come back."""
    rounds, away_s, rate = (1, 5.0, 30.0) if lab.short else (3, 30.0, 100.0)
    drift_at = SHORT_DRIFT_AT if lab.short else 1_000
    records = observations(int(rate * rounds * len(LOSSES) * (away_s + 150)), lab.seed, drift_at=drift_at)
    cluster = lab.nodes.start()
    lab.note(f"{NODES} nodes: {cluster.bootstrap}")
    raw = raw_config(cluster.bootstrap, "cluster")
    with Fleet(lab, raw, bootstrap=cluster.bootstrap) as fleet:
        fleet.start(2)
        with Probe(lab, fleet.members) as probe:
            sender = fleet.start_sending(records, rate)
            for loss in [loss for loss in LOSSES if loss.in_short or not lab.short] * rounds:
                _lose(lab, fleet, cluster, loss, away_s)
                sender.check_going(f"the end of: {loss.what}")
            sender.finish_early()
            fleet.wait_drained()
        probe.check()
        fleet.conclude()


def _lose(lab: Lab, fleet: Fleet, cluster: KafkaCluster, loss: Loss, away_s: float) -> None:
    # Otherwise a node could be missed that a partition has no other of.
    if not fleet.wait("all replicas are in sync", lambda: is_in_sync(fleet), 120.0, 0.5) or not fleet.wait_ready():
        return
    gone = loss.nodes(cluster, fleet)
    for number in gone:
        cluster.kill(number)
    gone_s = lab.elapsed_s
    lab.note(f"{loss.what}: SIGKILL to {' and '.join(f'node {number}' for number in gone)}")
    if loss.goes_on:
        # Once the group has noticed: what was fetched before is handled in any case.
        fleet.pause(1.0)
        fleet.wait_going(f"without {loss.what}", 120.0, before=fleet.consumed(), since_s=gone_s)
    fleet.pause(gone_s + away_s - lab.elapsed_s)
    cluster.start(*gone)
    back_s = lab.elapsed_s
    lab.note(f"back after {back_s - gone_s:.1f} s")
    if not loss.goes_on:
        fleet.wait_going(f"with {loss.what} back", 150.0, before=fleet.consumed(), since_s=back_s)


def _leader(cluster: KafkaCluster, fleet: Fleet, which: str) -> int:
    kafka = fleet.config.kafka
    return cluster.leader(kafka.changelog if which == "changelog" else kafka.topics.observations, 0)


def is_in_sync(fleet: Fleet) -> bool:
    """Return whether all replicas of the topics that matter are in sync."""
    try:
        return asyncio.run(_ask_in_sync(fleet))
    except (KafkaError, OSError, TimeoutError):
        return False


async def _ask_in_sync(fleet: Fleet) -> bool:
    kafka = fleet.config.kafka
    names = [kafka.topics.observations, kafka.topics.importances, kafka.changelog, _OFFSETS]
    admin = AIOKafkaAdminClient(bootstrap_servers=fleet.bootstrap, request_timeout_ms=5000)
    try:
        async with asyncio.timeout(15):
            await admin.start()
            described = await admin.describe_topics(names)
    finally:
        await admin.close()
    found = [partition for topic in described for partition in topic["partitions"]]
    return bool(found) and all(len(partition["isr"]) == NODES for partition in found)

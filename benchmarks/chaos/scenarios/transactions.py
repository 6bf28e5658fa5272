"""Each event once, on three nodes of which those are killed that a transaction hangs on, while it is open."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from support.cluster import KafkaCluster

from attributary_agents.kafka.transactions import transactional_id
from attributary_agents.state.names import is_checkpoint
from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.probe import Probe
from benchmarks.chaos.lab.workload import SHORT_DRIFT_AT, observations, raw_config
from benchmarks.chaos.scenarios.cluster import is_in_sync

_WRITTEN_WITHIN_S = 60.0


def run(lab: Lab) -> None:
    """Exactly once: of three nodes those are killed that an open transaction hangs on, and workers are frozen in it."""
    rounds, away_s, rate = (1, 5.0, 30.0) if lab.short else (3, 20.0, 100.0)
    losses: list[tuple[str, Callable[[KafkaCluster, Fleet], list[int]], bool]] = [
        ("the coordinator of the transactions of [0]", lambda at, fleet: [_coordinator(at, fleet)], True),
        ("the leader of changelog[0]", lambda at, fleet: [at.leader(fleet.config.kafka.changelog, 0)], True),
        ("the leader of importances[0]", lambda at, fleet: [at.leader(fleet.config.kafka.topics.importances, 0)], True),
        ("two of three nodes", lambda at, _fleet: list(at.nodes)[:2], False),
    ]
    drift_at = SHORT_DRIFT_AT if lab.short else 1_000
    records = observations(int(rate * rounds * (len(losses) + 1) * (away_s + 150)), lab.seed, drift_at=drift_at)
    cluster = lab.nodes.start()
    raw = raw_config(cluster.bootstrap, "transactions")
    raw |= {
        "delivery": "exactly_once",
        "checkpoint": {"interval_s": 0.5, "max_observations": 100, "max_share": 0.9},
    }
    with Fleet(lab, raw, bootstrap=cluster.bootstrap) as fleet:
        fleet.start(2)
        with Probe(lab, fleet.members) as probe:
            sender = fleet.start_sending(records, rate)
            for what, nodes, goes_on in losses * rounds:
                _lose(lab, fleet, cluster, what, nodes, away_s, goes_on=goes_on)
                sender.check_going(f"the end of: {what}")
        probe.check()
        lab.check("no worker ended by itself", not fleet.exits(), "; ".join(fleet.exits()[:3]) or "0 exits")
        for n in range(rounds):
            _freeze(lab, fleet, n % 2)
            _kill(lab, fleet, n % 2)
        sender.finish_early()
        fleet.wait_drained()
        fleet.finish()


def _lose(
    lab: Lab,
    fleet: Fleet,
    cluster: KafkaCluster,
    what: str,
    nodes: Callable[[KafkaCluster, Fleet], list[int]],
    away_s: float,
    *,
    goes_on: bool,
) -> None:
    # Otherwise a node could be missed that a partition has no other of.
    if not fleet.wait("all replicas are in sync", lambda: is_in_sync(fleet), 120.0, 0.5) or not fleet.wait_ready():
        return
    gone = nodes(cluster, fleet)
    _wait_written(lab, fleet)
    for number in gone:
        cluster.kill(number)
    gone_s = lab.elapsed_s
    lab.note(f"{what}: SIGKILL to {' and '.join(f'node {number}' for number in gone)}")
    if goes_on:
        fleet.pause(1.0)
        fleet.wait_going(f"without {what}", 120.0, before=fleet.consumed(), since_s=gone_s)
    fleet.pause(gone_s + away_s - lab.elapsed_s)
    cluster.start(*gone)
    back_s = lab.elapsed_s
    lab.note(f"back after {back_s - gone_s:.1f} s")
    if not goes_on:
        fleet.wait_going(f"with {what} back", 150.0, before=fleet.consumed(), since_s=back_s)


def _freeze(lab: Lab, fleet: Fleet, n: int) -> None:
    """Freeze a worker in a transaction for longer than its session, and let it go on beside its successor."""
    if not fleet.wait_ready():
        return
    member = fleet.members[n]
    _wait_written(lab, fleet)
    os.kill(member.worker.pid, signal.SIGSTOP)
    began_s, before = lab.elapsed_s, fleet.members[1 - n]
    lab.note(f"worker {n}: SIGSTOP")
    try:
        fleet.wait("the other has all partitions", lambda: _has_all(fleet, before.partitions), 120.0, 0.5)
        fleet.pause(2.0)
    finally:
        os.kill(member.worker.pid, signal.SIGCONT)
    lab.note(f"worker {n}: SIGCONT after {lab.elapsed_s - began_s:.1f} s")
    fleet.pause(5.0)
    fleet.wait_ready()


def _kill(lab: Lab, fleet: Fleet, n: int) -> None:
    """Kill a worker in a transaction, and start it again."""
    if not fleet.wait_ready():
        return
    _wait_written(lab, fleet)
    fleet.members[n].kill()
    lab.note(f"worker {n}: SIGKILL")
    fleet.members[n].start()
    fleet.wait_ready()


def _has_all(fleet: Fleet, partitions: Callable[[str], set[int]]) -> bool:
    return partitions(fleet.config.kafka.topics.observations) == set(range(fleet.config.kafka.partitions))


def _coordinator(cluster: KafkaCluster, fleet: Fleet) -> int:
    return cluster.coordinator(transactional_id(fleet.config, 0), of_transactions=True)


def _wait_written(lab: Lab, fleet: Fleet) -> None:
    """Wait until a state has just been written in a transaction, whose end is still to come."""
    try:
        is_open = asyncio.run(_until_written(fleet))
        lab.note(f"a state has been written; its transaction is {'open' if is_open else 'committed already'}")
    except (KafkaError, OSError, TimeoutError) as error:
        lab.note(f"no state was seen to be written ({error!r})")


async def _until_written(fleet: Fleet) -> bool:
    place = TopicPartition(fleet.config.kafka.changelog, 0)
    consumer = AIOKafkaConsumer(bootstrap_servers=fleet.bootstrap, enable_auto_commit=False, fetch_max_wait_ms=50)
    committed = AIOKafkaConsumer(
        bootstrap_servers=fleet.bootstrap, enable_auto_commit=False, isolation_level="read_committed"
    )
    async with asyncio.timeout(_WRITTEN_WITHIN_S), consumer, committed:
        consumer.assign([place])
        await consumer.seek_to_end(place)
        while True:
            record = await consumer.getone()
            name = (record.key or b"").rsplit(b"\0", 2)[0]
            if record.value and not name.startswith(b"\0") and not is_checkpoint(name):
                return bool((await committed.end_offsets([place]))[place] <= record.offset)

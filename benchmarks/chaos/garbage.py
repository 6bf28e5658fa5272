"""Random bytes in every topic that workers read: observations, models, and the changelog."""

from __future__ import annotations

from tests.support.kafka import read_all

from benchmarks.chaos.fleet import Fleet
from benchmarks.chaos.lab import Lab
from benchmarks.chaos.workload import PARTITIONS, Sent, observations, raw_config, slices


def run(lab: Lab) -> None:
    """Random keys and values on all topics, while a worker runs and between restarts; nothing dies, all is counted."""
    rounds, n = (2, 2_000) if lab.short else (10, 20_000)
    with Fleet(lab, raw_config(lab.bootstrap, "garbage", session_timeout_s=2.0), most_exits=2) as fleet:
        topics, changelog = fleet.config.kafka.topics, fleet.config.kafka.changelog
        member = fleet.add()
        for i, part in enumerate(slices(observations(n, lab.seed), rounds)):
            half = len(part) // 2
            fleet.send(part[:half])
            _throw(lab, fleet, topics.observations)
            _throw(lab, fleet, topics.models)
            _throw(lab, fleet, changelog)
            fleet.send(part[half:])
            fleet.wait_drained(60.0)
            if i % 2:
                member.kill()
            else:
                member.stop()
            for topic in (topics.observations, topics.models, changelog):
                _throw(lab, fleet, topic)
            lab.note(f"round {i + 1} of {rounds}: garbage while it ran, and before its restart")
            member.start()
        fleet.wait_drained(60.0)
        _throw_at_keys(lab, fleet, changelog)
        lab.note("garbage under the changelog's own keys, and a restart")
        member.kill()
        member.start()
        _throw(lab, fleet, topics.observations)
        fleet.wait_ready()
        fleet.wait_drained(60.0)
        lab.check("nothing died", not fleet.exits(), "; ".join(fleet.exits()) or "0 exits")
        fleet.stop()
        fleet.compare()


def _throw(lab: Lab, fleet: Fleet, topic: str, n: int = 25) -> None:
    rng = lab.random
    # A compacted topic takes no record without a key.
    thrown = [
        Sent(rng.randrange(PARTITIONS), rng.randbytes(rng.randint(1, 30)), rng.randbytes(rng.randint(0, 300)))
        for _ in range(n)
    ]
    fleet.send(thrown, topic)


def _throw_at_keys(lab: Lab, fleet: Fleet, changelog: str) -> None:
    rng = lab.random
    known = sorted({(record.partition, record.key) for record in read_all(lab.bootstrap, changelog)})
    own = [place for place in known if place[1].isascii()]
    fleet.send([Sent(partition, key, rng.randbytes(rng.randint(1, 300))) for partition, key in own], changelog)

"""Random bytes in every topic that workers read: observations, models, and the changelog."""

from __future__ import annotations

from support.kafka import read_all
from support.undisturbed import event_id, undisturbed

from attributary_agents.state.names import checkpoint_key
from benchmarks.chaos.compare.compare import offsets, states
from benchmarks.chaos.lab.fleet import Fleet
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.lab.workload import PARTITIONS, PLACE, Sent, observations, raw_config, slices

DAMAGED = "credit"


def run(lab: Lab) -> None:
    """Random bytes on all topics, while a worker runs and between restarts; nothing dies, all is accounted for."""
    rounds, n = (2, 1_800) if lab.short else (10, 20_000)
    with Fleet(lab, raw_config(lab.bootstrap, "garbage", session_timeout_s=2.0), most_exits=2) as fleet:
        topics = fleet.config.kafka.topics
        names = (topics.observations, topics.models, fleet.config.kafka.changelog)
        parts = list(slices(observations(n, lab.seed, drift_at=n // 3), rounds + 1))
        member = fleet.add()
        for i, part in enumerate(parts[:-1]):
            half = len(part) // 2
            fleet.send(part[:half])
            for topic in names:
                _throw(lab, fleet, topic)
            fleet.send(part[half:])
            fleet.wait_drained()
            if i % 2:
                member.kill()
            else:
                member.stop()
            for topic in names:
                _throw(lab, fleet, topic)
            lab.note(f"round {i + 1} of {rounds}: garbage while it ran, and before its restart")
            member.start()
        fleet.finish()
        lab.check("nothing died", not fleet.exits(), "; ".join(fleet.exits()) or "0 exits")
        _damage(lab, fleet, parts[-1])


def _damage(lab: Lab, fleet: Fleet, records: list[Sent]) -> None:
    """What is stored under our own keys is overwritten: one model and the counters of a partition are lost for good."""
    config = fleet.config
    lab.note(f"the stored state of {DAMAGED} and the counters of partition 3 are overwritten, and a restart")
    _overwrite(lab, fleet, [DAMAGED.encode(), checkpoint_key(3)])
    ends = {r.partition: r.offset for r in read_all(lab.bootstrap, config.kafka.topics.observations)}
    fleet.send(records)
    fleet.members[0].start()
    fleet.wait_drained()
    fleet.stop()
    lab.check("damage: nothing died", not fleet.exits(), "; ".join(fleet.exits()) or "0 exits")
    lab.take(offsets(lab.bootstrap, config))
    lost = {
        f"{r.topic}:{r.partition}:{r.offset}"
        for r in read_all(lab.bootstrap, config.kafka.topics.observations)
        if r.key == DAMAGED.encode() and r.offset > ends[PLACE[DAMAGED]]
    }
    letters = {event_id(r.headers) for r in read_all(lab.bootstrap, config.kafka.topics.dead_letters)}
    lab.check(
        f"every observation of {DAMAGED} since then is a dead letter",
        bool(lost) and lost <= letters,
        f"{len(lost & letters)} of {len(lost)}",
    )
    others = {name for name in PLACE if name != DAMAGED}
    lab.take(states(config, undisturbed(lab.bootstrap, config), others))


def _throw(lab: Lab, fleet: Fleet, topic: str, n: int = 25) -> None:
    rng = lab.random
    # A compacted topic takes no record without a key.
    thrown = [
        Sent(rng.randrange(PARTITIONS), rng.randbytes(rng.randint(1, 30)), rng.randbytes(rng.randint(0, 300)))
        for _ in range(n)
    ]
    fleet.send(thrown, topic)


def _overwrite(lab: Lab, fleet: Fleet, names: list[bytes]) -> None:
    rng, changelog = lab.random, fleet.config.kafka.changelog
    keys = sorted({(record.partition, record.key) for record in read_all(lab.bootstrap, changelog)})
    own = [(number, key) for number, key in keys if key.startswith(tuple(name + b"\0" for name in names))]
    fleet.send([Sent(number, key, rng.randbytes(rng.randint(1, 300))) for number, key in own], changelog)

"""Remarks on replicas that are fewer than they should be, with remedies.

They go by the configuration, or by the number that the cluster allows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from aiokafka.admin import AIOKafkaAdminClient

from ...config.settings import Config
from ...errors import AttributaryError
from ..admin import with_admin
from .answers import FoundTopic, ask_every, has_controller
from .checks import Seen, no_controller, tool_options
from .specs import CHANGELOG_SETTINGS, topic_specs, wanted_min_insync, wanted_replicas

MUCH = 5
"""A changelog of more live states than this, and than what waits to be compacted, is too large."""

REASSIGNMENT = "replicas.json"
"""Name of the file in the command lines that are printed."""


@dataclass(frozen=True)
class TopicsThere:
    """The needed topics as the brokers have them."""

    seen: Seen
    has_controller: bool = True
    """Whether somebody knows who is up and what is in sync: without, brokers tell what they heard last."""

    @property
    def found(self) -> dict[str, FoundTopic]:
        """Topics that exist, by name, with in-sync replicas that answer."""
        silent = set(self.seen.silent)
        answering: dict[str, FoundTopic] = {}
        for name, topic in self.seen.found.items():
            in_sync = {n: tuple(b for b in replicas if b not in silent) for n, replicas in topic.in_sync.items()}
            answering[name] = replace(topic, in_sync=in_sync)
        return answering

    @property
    def doubt(self) -> str:
        """Reason to doubt the data shown, with a remedy; empty without doubt."""
        if self.has_controller:
            return ""
        by = ", ".join(str(answer.node) for answer in self.seen.answers if not answer.fault)
        return (
            f"{no_controller(self.seen)}. Which replicas are in sync is not known until then, and what else is shown "
            f"is as {by} knew it last"
        )

    @property
    def brokers(self) -> list[int]:
        """Numbers of the brokers that are up."""
        return [answer.node.number for answer in self.seen.answers if not answer.fault]

    def remarks(self, config: Config) -> list[str]:
        """Return a line for each shortfall, with the command that mends it."""
        found = {spec.name: self.found[spec.name] for spec in topic_specs(config) if spec.name in self.found}
        if self.doubt:
            return [self.doubt]
        said = [self.seen.who_answers()] if self.seen.silent else []
        said += self.seen.not_told({spec.name for spec in topic_specs(config)} - self.seen.missing)
        return [*said, *_replicas(config, found, self.brokers), *_acknowledged(config, found)]


def topics_there(config: Config, *, within_s: float = 30.0) -> TopicsThere:
    """Ask every broker that is up about the needed topics.

    Parameters
    ----------
    within_s
        Longest time, in seconds, for the connection and the answers.

    Raises
    ------
    PreflightError
        No broker answers, or it refuses.
    """

    async def work(admin: AIOKafkaAdminClient) -> TopicsThere:
        seen = Seen(await ask_every(admin, [spec.name for spec in topic_specs(config)]))
        return TopicsThere(seen, not seen.silent or await has_controller(admin, seen.answers))

    return with_admin(config.kafka, work, within_s=within_s)


def _replicas(config: Config, found: dict[str, FoundTopic], brokers: list[int]) -> Iterator[str]:
    """Yield remarks on missing replicas and on replicas out of sync."""
    kafka = config.kafka
    wanted = wanted_replicas(kafka, len(brokers))
    few: dict[int, list[str]] = {}
    late: dict[tuple[int, ...], list[str]] = {}
    for name, topic in found.items():
        if topic.least_replicas < wanted:
            few.setdefault(topic.least_replicas, []).append(name)
        missing = {broker for n, replicas in topic.replicas.items() for broker in {*replicas} - {*topic.in_sync[n]}}
        if missing:
            late.setdefault(tuple(sorted(missing)), []).append(name)
        if topic.leaderless:
            yield f"{name}: partitions {_numbers(topic.leaderless)} have no leader: start the brokers of their replicas"
    says = (
        f"kafka.replication_factor is {wanted}"
        if kafka.replication_factor
        else f"the {len(brokers)} brokers that are up allow {wanted}"
    )
    for n, names in few.items():
        which = f"{', '.join(names)}: {_count(n)} of each partition, {says}"
        if wanted > len(brokers):
            yield f"{which}, and {len(brokers)} of the brokers are up: start the others first"
        else:
            yield f"{which}: {_reassign(config)}"
    for numbers, names in late.items():
        which = f"broker {numbers[0]} is" if len(numbers) == 1 else f"brokers {_numbers(numbers)} are"
        yield f"{', '.join(names)}: not all replicas are in sync: {which} away or behind{_remedy(numbers, brokers)}"


def _remedy(late: tuple[int, ...], brokers: list[int]) -> str:
    """Say how to mend replicas on brokers that do not answer."""
    away = [number for number in late if number not in brokers]
    if not away:
        return ""
    gone = " ".join(f"--gone {number}" for number in away[:8])
    it, will = ("it", "it will") if len(away) == 1 else ("them", "they will")
    return f": start {it}, or where {will} not come back: attributary topics list --reassignment {gone}"


def _acknowledged(config: Config, found: dict[str, FoundTopic]) -> Iterator[str]:
    """Yield remarks on min.insync.replicas."""
    for name, topic in found.items():
        if (needed := topic.min_insync) is None:
            continue
        wanted = wanted_min_insync(config.kafka, topic.least_replicas)
        stops = f"{name}: takes no record, as min.insync.replicas is {needed}"
        if needed > topic.least_replicas:
            lower = min(wanted, topic.least_replicas)
            yield f"{stops} and there is {_count(topic.least_replicas)}: {_set_min_insync(config, name, lower)}"
        elif needed > topic.least_in_sync:
            yield f"{stops} and {_count(topic.least_in_sync)} in sync: start the brokers that are away"
        elif needed < wanted <= topic.least_replicas:
            mend = _set_min_insync(config, name, wanted)
            yield f"{name}: min.insync.replicas is {needed}, should be {wanted}: {mend}"


def _count(n: int) -> str:
    return f"{n} replica{'' if n == 1 else 's'}"


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def _reassign(config: Config) -> str:
    return (
        f"attributary topics list --reassignment > {REASSIGNMENT} && kafka-reassign-partitions.sh "
        f"{tool_options(config.kafka)} --reassignment-json-file {REASSIGNMENT} --execute"
    )


def _set_min_insync(config: Config, name: str, n: int) -> str:
    return (
        f"kafka-configs.sh {tool_options(config.kafka)} --alter --entity-type topics --entity-name {name} "
        f"--add-config min.insync.replicas={n}"
    )


def changelog_remarks(config: Config, read: int, live: int) -> list[str]:
    """Return a remark on a changelog that is far larger than its state.

    A restart reads all of it, and the remark names settings that change that.

    Parameters
    ----------
    read
        Bytes that the changelog has.
    live
        Bytes of them that are the newest record of their key.
    """
    kafka = config.kafka
    # Beside the live state, in each partition a segment that is written and one that waits are as they should be.
    waiting = 2 * int(CHANGELOG_SETTINGS["segment.bytes"]) * kafka.partitions
    if read <= MUCH * live + waiting:
        return []
    settings = ",".join(f"{name}={value}" for name, value in CHANGELOG_SETTINGS.items())
    return [
        f"{kafka.changelog} has {read / 1e6:.3g} MB for {live / 1e6:.3g} MB of state, and a restart reads all of it: "
        f"kafka-configs.sh {tool_options(kafka)} --alter --entity-type topics --entity-name {kafka.changelog} "
        f"--add-config {settings}"
    ]


def reassignment(config: Config, there: TopicsThere, gone: Collection[int] = ()) -> str:
    """Return the plan that gives every partition its replicas, as JSON.

    It is for kafka-reassign-partitions. Replicas that are there stay where they are; further ones go to the brokers
    that have the fewest so far.

    Parameters
    ----------
    gone
        Numbers of brokers that will not come back: other brokers have their replicas.

    Raises
    ------
    AttributaryError
        One of them answers, or has no replica of these topics; or no other broker is there to take its replicas.
    """
    brokers = there.brokers
    if alive := sorted({*gone} & {*brokers}):
        raise AttributaryError(f"--gone {alive[0]}: that broker answers, so its replicas are not lost")
    having = [{*replicas} for topic in there.found.values() for replicas in topic.replicas.values()]
    for number in gone:
        lost = [replicas for replicas in having if number in replicas]
        if not lost:
            raise AttributaryError(f"--gone {number}: no partition of these topics has a replica on that broker")
        stuck = sum(not {*brokers} - replicas for replicas in lost)
        if stuck:
            raise AttributaryError(
                f"--gone {number}: no broker is free to take its replicas of {stuck} partitions, as each that answers "
                "has one already: start another broker first"
            )
    wanted = min(wanted_replicas(config.kafka, len(brokers)), len(brokers))
    load = dict.fromkeys(brokers, 0)
    for topic in there.found.values():
        for replicas in topic.replicas.values():
            for broker in replicas:
                load[broker] = load.get(broker, 0) + 1
    partitions = []
    for name, topic in there.found.items():
        for n, replicas in topic.replicas.items():
            chosen = [broker for broker in replicas if broker not in gone]
            if len(chosen) >= wanted:
                continue
            while len(chosen) < wanted:
                least = min((broker for broker in brokers if broker not in chosen), key=lambda b: (load[b], b))
                chosen.append(least)
                load[least] += 1
            partitions.append({"topic": name, "partition": n, "replicas": chosen})
    return json.dumps({"version": 1, "partitions": partitions})

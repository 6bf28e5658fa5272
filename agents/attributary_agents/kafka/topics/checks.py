"""Checks that the topics can hold the data of a worker.

A fault counts when every broker tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from aiokafka.admin import AIOKafkaAdminClient

from ...config.settings import Config, KafkaConfig
from ...errors import PreflightError
from ..admin import with_admin
from .answers import Answer, FoundTopic, agree, ask, ask_until, nodes
from .specs import TopicSpec, topic_specs

RECORD_BYTES = 1_000_000
"""Longest record of the changelog, generously, with key and head; brokers take 1 048 588 by default."""

AGREED_WITHIN_S = 10.0
"""Longest wait, in seconds, until all brokers tell the same; less than `with_admin` allows in all."""


@dataclass(frozen=True)
class Seen:
    """Answers of the brokers about the needed topics."""

    answers: list[Answer]

    @property
    def found(self) -> dict[str, FoundTopic]:
        """Topics that any broker tells, without conflicting partition numbers."""
        found: dict[str, FoundTopic] = {}
        for answer in self.answers:
            found = {**answer.found, **found}
        return {name: topic for name, topic in found.items() if len(self._numbers(name)) == 1}

    def _numbers(self, name: str) -> set[int]:
        return {answer.found[name].partitions for answer in self.answers if name in answer.found}

    def confirmed(self, name: str) -> bool:
        """Return whether all brokers tell the same partitions of a topic."""
        return len(self._numbers(name)) == 1 and all(name in answer.found for answer in self.answers)

    @property
    def missing(self) -> set[str]:
        """Topics unknown at, or hidden from this user by, all that answer."""
        answered = [answer for answer in self.answers if not answer.fault]
        asked = {name for answer in answered for name in (*answer.found, *answer.untold, *answer.hidden)}
        return {name for name in asked if all(name in answer.unknown | answer.hidden for answer in answered)}

    @property
    def silent(self) -> list[int]:
        """Brokers, named by the cluster or with a replica, that do not answer."""
        named = {answer.node.number for answer in self.answers}
        for answer in self.answers:
            for topic in answer.found.values():
                named.update(*topic.replicas.values())
        return sorted(named - {answer.node.number for answer in self.answers if not answer.fault})

    def who_answers(self) -> str:
        """Say how many brokers answer, and which do not."""
        addresses = {answer.node.number: str(answer.node) for answer in self.answers}
        silent = [addresses.get(number, f"broker {number}") for number in self.silent]
        n = sum(not answer.fault for answer in self.answers)
        of = n + len(silent)
        return (
            f"{n} of {of} broker{'' if of == 1 else 's'} answer{'s' if n == 1 else ''}, and {', '.join(silent)} "
            f"{'does' if len(silent) == 1 else 'do'} not"
        )

    def not_told(self, names: AbstractSet[str]) -> list[str]:
        """Describe all that brokers do not tell though they should, and why."""
        said = [f"{answer.node}: {answer.fault}" for answer in self.answers if answer.fault]
        for answer in self.answers:
            why: dict[str, list[str]] = {}
            for name in sorted(names & answer.untold.keys()):
                why.setdefault(answer.untold[name], []).append(name)
            said += [f"{answer.node} does not tell {', '.join(which)} yet ({reason})" for reason, which in why.items()]
        for name in sorted(names):
            if len(self._numbers(name)) > 1:
                each = (
                    f"{answer.found[name].partitions} by {answer.node}"
                    for answer in self.answers
                    if name in answer.found
                )
                said.append(f"partitions of {name}: {', '.join(each)}")
        return said


def no_controller(seen: Seen) -> str:
    """Say that the cluster has no controller, and how to mend that."""
    return (
        f"the cluster has no controller ({seen.who_answers()}): start the brokers that are away, more than half of the "
        "controllers must be up"
    )


async def see(
    admin: AIOKafkaAdminClient, config: Config, is_fine: Callable[[Seen], bool] = lambda _seen: False
) -> Seen:
    """Ask a broker about the needed topics, and all brokers if in doubt.

    Where the answer is not fine, all are asked until they agree.

    Parameters
    ----------
    is_fine
        Whether what one broker tells needs nobody else to confirm it.
    """
    names = [spec.name for spec in topic_specs(config)]
    for node in await nodes(admin):
        answer = await ask(admin, node, names)
        if not answer.fault:
            if is_fine(Seen([answer])):
                return Seen([answer])
            break
    return Seen(await ask_until(admin, names, agree, AGREED_WITHIN_S))


def check_topics(config: Config, only: str | None = None) -> None:
    """Check that the needed topics exist and can hold their records.

    PreflightError names every fault.

    Parameters
    ----------
    only
        Name of the one topic to check; None checks all.
    """
    specs = [spec for spec in topic_specs(config) if only in (None, spec.name)]
    names = {spec.name for spec in specs}
    needed = {spec.name for spec in specs if spec.is_needed or spec.name == only}

    def is_fine(seen: Seen) -> bool:
        return needed <= seen.found.keys() and not faults(config, specs, seen)

    async def work(admin: AIOKafkaAdminClient) -> Seen:
        return await see(admin, config, is_fine)

    seen = with_admin(config.kafka, work)
    missing = [spec.name for spec in specs if spec.name in seen.missing and spec.name in needed]
    # Kafka shows a user only the topics that it may describe.
    hint = "" if config.kafka.security.protocol == "PLAINTEXT" else ", or let this user describe them"
    make = f"(make them with `attributary topics create`{hint})"
    said = [f"missing topics: {', '.join(missing)} {make}"] if missing else []
    said += faults(config, specs, seen)
    # What a broker has not told says nothing about the topic, only about the broker.
    if untold := seen.not_told(names - seen.missing):
        said.append(f"not all brokers tell the same after {AGREED_WITHIN_S:.0f} s: {'; '.join(untold)}: {AGAIN}")
    if said:
        raise PreflightError("; ".join(said))


AGAIN = "run it again in a moment, when they are up; `attributary topics list` shows what each of them tells"


def faults(config: Config, specs: list[TopicSpec], seen: Seen) -> list[str]:
    """Describe the faults of topics that exist, and how to mend them."""
    said: list[str] = []
    for spec in specs:
        if spec.name in seen.found:
            said += partition_faults(config, spec.name, seen)
            said += _setting_faults(config, spec, seen.found[spec.name])
    return said


def _needed_partitions(config: Config, found: Mapping[str, FoundTopic]) -> int:
    """Return the partitions of the observations, state or configuration."""
    for name in (config.kafka.topics.observations, config.kafka.changelog):
        if name in found:
            return found[name].partitions
    return config.kafka.partitions


def partition_faults(config: Config, name: str, seen: Seen) -> Iterator[str]:
    """Yield faults in a number of partitions, and the least costly remedy."""
    kafka, observations = config.kafka, config.kafka.topics.observations
    if name not in (observations, kafka.topics.models, kafka.changelog, kafka.shards):
        return
    needed, n = _needed_partitions(config, seen.found), seen.found[name].partitions
    has = f"{name} has {n} partition{'' if n == 1 else 's'}"
    if n == needed:
        if n != kafka.partitions and name in (observations, kafka.changelog):
            yield f"{has}, kafka.partitions is {kafka.partitions}: set kafka.partitions to {n}"
        return
    wrong = f"{has}, and must have as many as {observations}, {needed}"
    if n < needed:
        alter = f"--alter --topic {name} --partitions {needed}"
        yield f"{wrong}: add what is missing, nothing is lost by it: kafka-topics.sh {tool_options(kafka)} {alter}"
    elif name == kafka.changelog:
        yield (
            f"{wrong}: set kafka.group to another name and run `attributary topics create`: the models begin afresh, "
            f"and the states in {name} stay as they are"
        )
    elif not seen.confirmed(name):
        yield f"{wrong}, as far as the brokers that answer know"
    else:
        yield (
            f"{wrong}; partitions cannot be taken away: delete it, run `attributary topics create`, and send again the "
            "versions that no worker has taken over yet"
        )


def tool_options(kafka: KafkaConfig) -> str:
    """Return the options with which Kafka's own tools reach the brokers."""
    how = "" if kafka.security.protocol == "PLAINTEXT" else " --command-config client.properties"
    return f"--bootstrap-server {','.join(kafka.brokers)}{how}"


def _setting_faults(config: Config, spec: TopicSpec, found: FoundTopic) -> Iterator[str]:
    observations, changelog = config.kafka.topics.observations, config.kafka.changelog
    if spec.name == changelog and "compact" not in found.settings.get("cleanup.policy", "compact"):
        yield f"{spec.name} is not compacted, so it would lose states: set its cleanup.policy to compact"
    # A record above the topic's limit is refused when it is written, which stops the worker then.
    limit = found.settings.get("max.message.bytes")
    needed = spec.settings.get("max.message.bytes")
    if spec.name != observations and limit and needed and int(limit) < int(needed):
        yield (
            f"{spec.name} takes records of {limit} bytes, kafka.max_record_bytes is {needed}: set its "
            f"max.message.bytes to {needed}, or kafka.max_record_bytes to {limit}"
        )
    if spec.name == changelog and limit and int(limit) < RECORD_BYTES:
        yield f"{spec.name} takes records of {limit} bytes: set its max.message.bytes to {RECORD_BYTES} or more"

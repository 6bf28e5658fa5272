"""`attributary topics`: lists or creates the topics that the configuration needs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..config.settings import Config, KafkaConfig
from ..errors import AttributaryError, PreflightError
from .commands import Commands, config_option, json_option, say, topic_remark
from .progress import told_when_slow

if TYPE_CHECKING:
    from ..kafka.topics import FoundTopic, TopicSpec, TopicsThere

ASKED_WITHIN_S = 15.0
"""Longest time that `topics list` takes over brokers that do not answer."""


@click.group(cls=Commands)
def topics() -> None:
    """List or create the topics that the configuration needs."""


@topics.command("list")
@config_option
@click.option("--wanted", is_flag=True, help="Print what is needed only, and ask no broker.")
@click.option(
    "--reassignment",
    "as_reassignment",
    is_flag=True,
    help="Print which brokers are to have the partitions that lack replicas, as kafka-reassign-partitions reads it.",
)
@click.option(
    "--gone",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="BROKER",
    help="With --reassignment: give the replicas of this broker, which will not come back, to others; can be given "
    "several times. [default: none]",
)
@json_option
def topics_list(config: Config, wanted: bool, as_reassignment: bool, gone: tuple[int, ...], as_json: bool) -> None:
    """Print every needed topic with its partitions and settings, and as the brokers have it.

    What is below the configuration, or below what the cluster allows, is said in a line each, with the command that
    mends it. Where no broker answers, only what is needed is printed, and the exit code is 2; it is 2, too, where the
    cluster has no controller: what is in sync is not known then. It takes 30 s at most.

    \b
        attributary topics list --config attributary.yaml
        attributary topics list --wanted      # asks no broker
        attributary topics list --reassignment --gone 3 > replicas.json
    """
    from ..kafka.topics import reassignment, topic_specs, topics_there

    if as_reassignment:
        if wanted:
            raise AttributaryError("--reassignment asks the brokers what there is, and --wanted asks none: choose one")
        with told_when_slow(config):
            asked = topics_there(config, within_s=ASKED_WITHIN_S)
        if asked.doubt:
            raise PreflightError(asked.doubt)
        click.echo(reassignment(config, asked, gone))
        return
    if gone:
        raise AttributaryError("--gone says whose replicas --reassignment gives to others: give that, too")
    specs, there, unasked = topic_specs(config), None, ""
    if not wanted:
        try:
            with told_when_slow(config):
                there = topics_there(config, within_s=ASKED_WITHIN_S)
        except AttributaryError as error:
            unasked = str(error)
    remarks = there.remarks(config) if there else []
    if as_json:
        listed = [_as_json(config, spec, there) for spec in specs]
        silent, doubt = (there.seen.silent, there.doubt or None) if there else (None, None)
        said = {"topics": listed, "remarks": remarks, "silent": silent, "doubt": doubt, "unasked": unasked or None}
        click.echo(json.dumps(said, indent=2))
    else:
        for spec in specs:
            settings = " ".join(f"{name}={value}" for name, value in spec.settings.items())
            click.echo(f"{spec.name}\tpartitions={spec.partitions}\t{settings}\t# {spec.purpose}")
            if there:
                click.echo(f"\t{_there(spec, there)}")
        for remark in remarks if not (there and there.doubt) else []:
            say(topic_remark(remark))
        if not there:
            click.echo(f"# {_wanted_copies(config.kafka)}")
    if unasked:
        raise PreflightError(f"what there is of them is not known: {unasked}")
    if there and there.doubt:
        raise PreflightError(there.doubt)


def _wanted_copies(kafka: KafkaConfig) -> str:
    replicas = kafka.replication_factor or "as many as there are brokers, at most 3"
    return f"replicas: {replicas}; min.insync.replicas: {kafka.min_insync_replicas or '2 of three replicas, else 1'}"


def _there(spec: TopicSpec, there: TopicsThere) -> str:
    topic = there.found.get(spec.name)
    if topic is None:
        return "missing: attributary topics create" if spec.name in there.seen.missing else "not told by all brokers"
    least = "?" if topic.min_insync is None else topic.min_insync
    in_sync = "?" if there.doubt else topic.least_in_sync
    return (
        f"there: partitions={topic.partitions} replicas={topic.least_replicas} in-sync={in_sync} "
        f"min.insync.replicas={least}"
    )


def _as_json(config: Config, spec: TopicSpec, there: TopicsThere | None) -> dict[str, Any]:
    topic: FoundTopic | None = there.found.get(spec.name) if there else None
    is_known = there is not None and not there.doubt
    wanted = {"replicas": config.kafka.replication_factor, "min_insync_replicas": config.kafka.min_insync_replicas}
    found = (
        None
        if topic is None
        else {
            "partitions": topic.partitions,
            "replicas": topic.least_replicas,
            "in_sync": topic.least_in_sync if is_known else None,
            "min_insync_replicas": topic.min_insync,
            "leaderless": list(topic.leaderless) if is_known else None,
        }
    )
    return {**asdict(spec), **wanted, "found": found}


@topics.command("create")
@config_option
def topics_create(config: Config) -> None:
    """Create the topics that are missing; those that are there are left as they are.

    It ends when every broker of the cluster knows them. Each partition gets as many replicas as there are brokers,
    at most 3, or as `kafka.replication_factor` says; of three, two must have a record before it counts as written.

    \b
        attributary topics create --config attributary.yaml
    """
    from ..kafka.topics import create_topics, few_replicas, topics_there

    with told_when_slow(config):
        created = create_topics(config)
        there = topics_there(config)
    for spec, is_new in created:
        topic = there.found.get(spec.name)
        counts = [_count(spec.partitions, "partition"), *([_count(topic.least_replicas, "replica")] if topic else [])]
        click.echo(f"{'created' if is_new else 'exists '} {spec.name} ({', '.join(counts)})")
    new = [there.found[spec.name].least_replicas for spec, is_new in created if is_new and spec.name in there.found]
    few = few_replicas(config, min(new)) if new else ""
    for remark in [*([few] if few else []), *there.remarks(config)]:
        say(topic_remark(remark), err=True)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"

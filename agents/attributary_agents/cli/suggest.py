"""`attributary sources suggest`: prints the section of a source, guessed from a sample of its topic."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..config.reading import load_config
from ..config.settings import KafkaConfig
from ..errors import AttributaryError
from ..logs import without_user
from .commands import json_option, say

if TYPE_CHECKING:
    from ..sources.records import OriginRecord
    from ..sources.suggest.suggestion import Topic


@click.command()
@click.argument("topic", required=False)
@click.option(
    "--config",
    "-c",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="ATTRIBUTARY_CONFIG",
    help="Use the brokers, and the schema registry, of this configuration, and print the sections alone. [default: the "
    "file that ATTRIBUTARY_CONFIG names]",
)
@click.option(
    "--brokers",
    metavar="HOST:PORT[,…]",
    help="Use these brokers, and print a whole configuration. [default: localhost:9092]",
)
@click.option("--labels", metavar="TOPIC", help="Join labels of this topic. [default: none]")
@click.option(
    "--y", "label", metavar="FIELD", help="Take this field as the label. [default: one that is called like one]"
)
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read JSON lines, the values of records, and ask no broker; TOPIC is what is written then. [default: none]",
)
@click.option(
    "--labels-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --file: read the labels from these JSON lines. [default: none]",
)
@click.option(
    "--records", "n", type=click.IntRange(min=1), default=1000, show_default=True, help="Read so many records at most."
)
@json_option
def suggest(
    topic: str | None,
    path: Path | None,
    brokers: str | None,
    labels: str | None,
    label: str | None,
    file: Path | None,
    labels_file: Path | None,
    n: int,
    as_json: bool,
) -> None:
    """Print how to attach a topic that you have, to paste, with reasons.

    Of all its partitions the newest records are read, and as many from all of the older ones; nothing is committed, and
    no consumer group is made. What is what is guessed by names and by what the values are, never by what goes along
    with the label. Look at it, then try it with `attributary check --sample 1000`.

    \b
        attributary sources suggest rentals --brokers kafka:9092
        attributary sources suggest rentals --labels counts -c attributary.yaml
        attributary sources suggest rentals --file rentals.jsonl

    The exit code is 0; or 2 where something is left to say, which stands there as ???.
    """
    from ..sources.samples import read_lines
    from ..sources.suggest.suggestion import UNKNOWN
    from ..sources.suggest.suggestion import suggest as suggestion_of

    if topic is None and file is None:
        raise AttributaryError("give the name of a TOPIC, or --file with the values of records")
    if labels_file is not None and file is None:
        raise AttributaryError("--labels-file goes with --file: of topics give --labels TOPIC")
    config = None if path is None else load_config(path)
    kafka = config.kafka if config is not None else KafkaConfig(brokers=(brokers or "localhost:9092").split(","))
    if config is not None and brokers is not None:
        raise AttributaryError("give either --config or --brokers: the configuration has brokers of its own")
    names = [topic or _stem(file)]
    if labels is not None or labels_file is not None:
        names.append(labels or _stem(labels_file))
        if file is not None and labels_file is None:
            raise AttributaryError("--labels with --file: give --labels-file, too")
    if file is not None:
        records = [read_lines(path, n) for path in (file, labels_file) if path is not None]
    else:
        records = _from_topics(kafka, names, n)
    ours, *late = [_topic(name, each, kafka) for name, each in zip(names, records, strict=True)]
    whole, models = (kafka.brokers, []) if config is None else (None, list(config.models))
    found = suggestion_of(ours, late[0] if late else None, label, whole, models)
    if as_json:
        click.echo(without_user(json.dumps(found.data, ensure_ascii=False)))
    else:
        click.echo(without_user(found.text), nl=False)
    if not found.is_complete:
        say(f"attributary: write what is left to say in place of {UNKNOWN}", err=True)
        sys.exit(2)


def _stem(path: Path | None) -> str:
    assert path is not None
    return path.name.partition(".")[0] or "records"


def _from_topics(kafka: KafkaConfig, topics: list[str], n: int) -> list[list[OriginRecord]]:
    from ..kafka.clients import client_log_muted
    from ..kafka.topics.origins import find_origin_topics
    from ..sources.samples import read_spread

    partitions = find_origin_topics(kafka, dict(zip(topics, ("TOPIC", "--labels"), strict=False)))

    async def read() -> list[list[OriginRecord]]:
        return [await read_spread(kafka, {topic: partitions[topic]}, n) for topic in topics]

    with client_log_muted():
        return asyncio.run(read())


def _topic(topic: str, records: list[OriginRecord], kafka: KafkaConfig) -> Topic:
    """Decode the records by the format that they seem to have."""
    from ..sources.samples import decode
    from ..sources.suggest.suggestion import Topic, guess_format

    if not records:
        raise AttributaryError(f"{topic}: there is no record to go by")
    name, reason = guess_format(records)
    names = [name] if name != "framed" else ["avro", "protobuf"]
    if name == "framed" and getattr(kafka, "schema_registry", None) is None:
        raise AttributaryError(
            f"{topic}: values begin with {reason}, so they are Avro or Protobuf: give --config with "
            "kafka.schema_registry.url"
        )
    for format_name in names:
        sample = asyncio.run(decode(topic, records, format_name, kafka))
        if any(sample.decoded):
            return Topic(sample, format_name, reason)
    first = next(iter(sample.faults.values()), None)
    said = "they have no value" if first is None else f"of the first: {first}"
    raise AttributaryError(f"{topic}: none of {len(records)} records can be read as {' or '.join(names)}; {said}")

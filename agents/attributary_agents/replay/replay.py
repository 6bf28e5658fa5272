"""Replays a file without Kafka: the same records go through the same function as in a worker, into files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import generate_latest

from attributary_topics import encode_json

from ..config.settings import Config
from ..kafka.producing import encode_value
from ..monitoring.web import registry
from ..worker.partition import Partition
from ..worker.records import Record
from ..worker.view import PartitionView, WorkerView
from .files import Source
from .report import write_report

IMPORTANCES, CHANGES, DEAD_LETTERS = "importances.jsonl", "changes.jsonl", "dead-letters.jsonl"


@dataclass(frozen=True)
class ReplayResult:
    """Holds what a replay has counted, and where it wrote."""

    consumed: int
    explained: int
    dead_letters: int
    out: Path


def records(source: Source, model_id: str, topic: str) -> Iterator[Record]:
    """Yield the file's records as one partition of the observations topic would have them."""
    for offset, value in enumerate(source.values()):
        yield Record(topic, 0, offset, 0, model_id.encode(), encode_value(value))


def replay(
    source: Source,
    model_id: str,
    config: Config,
    out: Path,
    *,
    limit: int | None = None,
    progress: Callable[[int, Partition], None] | None = None,
) -> ReplayResult:
    """Run every observation of a file through the model and write what the worker would have published.

    Parameters
    ----------
    model_id
        Whose observations they are.
    out
        Folder to write `importances.jsonl`, `changes.jsonl`, `dead-letters.jsonl`, `metrics.prom` and
        `report.html` to; made if it is not there.
    limit
        Stop after so many rows.
    progress
        Called after each observation with the number handled so far.
    """
    out.mkdir(parents=True, exist_ok=True)
    topics = config.kafka.topics
    partition = Partition(topics.observations, 0, config, load=lambda _key: None)
    view = WorkerView({0: PartitionView(partition)})
    names = {topics.importances: IMPORTANCES, topics.changes: CHANGES, topics.dead_letters: DEAD_LETTERS}
    with ExitStack() as stack:
        files = {topic: stack.enter_context((out / name).open("wb")) for topic, name in names.items()}
        for n, record in enumerate(records(source, model_id, topics.observations), start=1):
            if limit is not None and n > limit:
                break
            for outgoing in partition.handle(record):
                value = outgoing.value or b""
                if outgoing.topic == topics.dead_letters:
                    headers = {name: (text or b"").decode("utf-8", "replace") for name, text in outgoing.headers}
                    value = encode_json({"value": value.decode("utf-8", "replace"), "headers": headers})
                files[outgoing.topic].write(value + b"\n")
            if progress is not None:
                progress(n, partition)
    (out / "metrics.prom").write_bytes(generate_latest(registry(config, view)))
    write_report(out / "report.html", out / IMPORTANCES, out / CHANGES)
    counters = partition.counters
    return ReplayResult(counters.consumed, counters.used, sum(counters.dead_letters.values()), out)

"""Replay of a file without Kafka, by the same function as in a worker.

The records that a worker would send go into files.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import generate_latest

from attributary_topics import ModelGuard, encode_json

from ..config.settings import Config
from ..files.source import Source
from ..kafka.observations import encode_value
from ..monitoring.metrics import registry
from ..private_files import make_private_folder, open_private, write_private
from ..worker.heartbeat import status_of
from ..worker.partition import Partition
from ..worker.records import Record
from ..worker.view import PartitionView, WorkerView
from .page import ReplayPage

IMPORTANCES, INCIDENTS = "importances.jsonl", "incidents.jsonl"
DEAD_LETTERS = "dead-letters.jsonl"


@dataclass(frozen=True)
class ReplayResult:
    """Counts of a replay, and the folder of its files.

    Attributes
    ----------
    consumed, explained
        Observations, and those that the model has taken: predicted, scored, explained or skipped, learnt.
    n_explained
        Observations that an importance is made of.
    reasons, skipped
        Dead letters by reason, and by explainer the observations that it skipped, by reason.
    guard
        From when on shifts of the model's loss can be told; None where its loss is not watched.
    """

    consumed: int
    explained: int
    n_explained: int
    reasons: dict[str, int]
    skipped: dict[str, dict[str, int]]
    guard: ModelGuard | None
    out: Path

    @property
    def dead_letters(self) -> int:
        """Observations that are dead letters."""
        return sum(self.reasons.values())


def records(source: Source, model_id: str, topic: str) -> Iterator[Record]:
    """Yield the file's rows as records of an observations partition."""
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
    """Run a file's observations through the model and write the output.

    The output is everything that the worker would have published.

    Parameters
    ----------
    model_id
        Whose observations they are.
    out
        Folder to write `importances.jsonl`, `incidents.jsonl`, `dead-letters.jsonl`, `metrics.prom`
        and `report.html` to, which their owner alone may read; made if it is not there.
    limit
        Stop after so many rows.
    progress
        Called after each observation with the number handled so far.
    """
    config = config.without_shards
    make_private_folder(out)
    topics = config.kafka.topics
    partition = Partition(topics.observations, 0, config, load=lambda _key: None)
    view = WorkerView({0: PartitionView(partition)})
    names = {
        topics.importances: IMPORTANCES,
        topics.incidents: INCIDENTS,
        topics.dead_letters: DEAD_LETTERS,
    }
    with ExitStack() as stack:
        said = logging.getLogger(Partition.__module__)  # what a worker logs of incidents, which are in a file here
        stack.callback(said.setLevel, said.level)
        said.setLevel(logging.CRITICAL)
        page = stack.enter_context(closing(ReplayPage(model_id, config)))
        files = {topic: stack.enter_context(open_private(out / name)) for topic, name in names.items()}
        for n, record in enumerate(records(source, model_id, topics.observations), start=1):
            if limit is not None and n > limit:
                break
            for outgoing in partition.handle(record):
                page.take(outgoing)
                value = outgoing.value or b""
                if outgoing.topic == topics.dead_letters:
                    headers = {name: (text or b"").decode("utf-8", "replace") for name, text in outgoing.headers}
                    value = encode_json({"value": value.decode("utf-8", "replace"), "headers": headers})
                files[outgoing.topic].write(value + b"\n")
            if progress is not None:
                progress(n, partition)
        partition.dead_letter_log.say_rest()
        write_private(out / "metrics.prom", generate_latest(registry(config, view)))
        status = status_of(partition, model_id, None)
        page.write(out / "report.html", status)
    counters = partition.counters
    explainers = {name: e for state in partition.models.values() for name, e in state.explainers.items()}
    return ReplayResult(
        counters.consumed,
        counters.used,
        max((explainer.n_observations for explainer in explainers.values()), default=0),
        dict(+counters.dead_letters),
        {name: dict(explainer.skipped) for name, explainer in explainers.items() if explainer.skipped},
        None if status is None else status.guard,
        out,
    )

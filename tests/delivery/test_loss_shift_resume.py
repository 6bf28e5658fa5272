"""A frozen model that becomes wrong is told of by its bytes on the topic, and a crash in between changes none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.models.frozen import FLIPPED_FROM, made
from tests.agents.models.test_loss_shifts import CONFIG
from tests.agents.stand_ins import TOPIC
from tests.agents.worker.test_partition import partition_of, record
from tests.delivery.remains import Log, checkpoint, stored_models

N = FLIPPED_FROM + 1500
WORKER = parse_config({"models": {"m": CONFIG.model_dump(mode="json", exclude_none=True) | {"change": None}}})


def stream() -> list[Record]:
    found = [record(i, b"m", json.dumps({"x": one.x, "y": one.y}).encode()) for i, one in enumerate(made(N, seed=11))]
    found[500] = record(500, b"m", b'{"x": {"a": 0.0, "b": 0.0, "c": 0.0}}')  # without a label: a dead letter
    return found


@pytest.fixture(scope="module")
def undisturbed() -> tuple[Log, dict[str, Any]]:
    partition, table, log = partition_of(WORKER), dict[bytes, bytes](), Log()
    for one in stream():
        log.send(partition.handle(one))
    checkpoint(partition, table)
    return log, stored_models(table, WORKER)


def test_35_percent_of_flipped_labels_are_on_the_topic(undisturbed: tuple[Log, dict[str, Any]]) -> None:
    log, _ = undisturbed
    changes = {name: json.loads(one.value or b"") for (topic, name), one in log.by_id.items() if "changes" in topic}
    (first_id, first), (_, explained) = changes.items()
    assert (first["event"], first["kind"], first["route"]) == ("loss_shift", "worse", "loss")
    assert first_id == f"m:{TOPIC}:0:{first['source']['offset']}:0"
    assert FLIPPED_FROM < first["source"]["offset"] < FLIPPED_FROM + 500
    assert (explained["event"], explained["change_id"]) == ("loss_shift_explained", first_id)


@pytest.mark.parametrize("n", [5000, FLIPPED_FROM + 600])
def test_a_crash_changes_nothing_of_it(n: int, undisturbed: tuple[Log, dict[str, Any]]) -> None:
    """Once while the model is calibrated, and once while a shift is open and its features are due."""
    records, table, log = stream(), dict[bytes, bytes](), Log()
    partition = partition_of(WORKER)
    for i, one in enumerate(records[:n]):
        log.send(partition.handle(one))
        if i == n - 200:
            checkpoint(partition, table)  # what comes after it is done again
    successor = Partition(TOPIC, 0, WORKER, dict(table).get)
    for one in records[successor.offset + 1 :]:
        log.send(successor.handle(one))
    checkpoint(successor, table)
    assert (log.by_id, stored_models(table, WORKER)) == (undisturbed[0].by_id, undisturbed[1])

"""The mapper inside `attributary run`: another worker takes a source over, labels join, brokers may be away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.demo.brokers import Broker, BrokerMissingError, KafkaBroker
from tests.integration.sources.process import MapperProcess
from tests.integration.sources.rentals import Made, made
from tests.integration.sources.test_exact import check_exact

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 12_000


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that may be stopped."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"))
    try:
        broker.start()
    except BrokerMissingError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


def of_outcome(name: str, outcome: str, *workers: WorkerProcess) -> int:
    found = (series for worker in workers for series in worker.metrics().get(f"attributary_{name}", {}).items())
    return int(sum(value for labels, value in found if ("outcome", outcome) in labels))


def mapped_by(worker: WorkerProcess) -> bool:
    return "mapping begins" in worker.log.read_text(errors="replace")


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_of_two_workers_one_maps_and_when_it_is_killed_the_other_and_each_label_joins_once(
    kafka_broker: Broker, tmp_path: Path, delivery: str
) -> None:
    data = made(kafka_broker.bootstrap, N, late=True, run={"mapper": True}, delivery=delivery)
    workers = [WorkerProcess(data.raw, tmp_path) for _ in range(2)]
    for worker in workers:
        worker.start()
    wait_for("one maps", lambda: any(map(mapped_by, workers)), 90)
    first = next(worker for worker in workers if mapped_by(worker))
    (other,) = (worker for worker in workers if worker is not first)
    first.kill()
    wait_for("all are joined", lambda: of_outcome("labels_total", "joined", other) == data.n["returns"], 240)
    assert mapped_by(other)
    assert of_outcome("origin_records_total", "accepted", other) == sum(data.n.values())
    assert other.stop() == 0
    assert "Traceback" not in other.log.read_text(errors="replace")
    check_exact(data)


def test_brokers_that_were_away_change_nothing(own_broker: KafkaBroker, tmp_path: Path) -> None:
    data = made(own_broker.bootstrap, N)
    mapper = MapperProcess(data.raw, tmp_path)
    mapper.wait_until_it_maps()
    own_broker.stop()
    own_broker.start()
    wait_for("all is mapped", lambda: _is_mapped(data, mapper), 240)
    assert mapper.stop() == 0, mapper.said
    assert "Traceback" not in mapper.said
    check_exact(data)


def _is_mapped(data: Made, mapper: MapperProcess) -> bool:
    lags = mapper.metrics().get("attributary_source_lag_records", {})
    return len(lags) == 9 and not any(lags.values())

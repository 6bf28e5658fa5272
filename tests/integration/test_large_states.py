"""States larger than a record, in the changelog or as objects, through restarts, a full disk and a lost key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.kafka import produce, read_all
from support.undisturbed import check_equal
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]
N = 400
KEY = "k" * 32


def configured(broker: Broker, **sections: Any) -> tuple[dict[str, Any], Config]:
    raw, _ = created(broker, checkpoint={"interval_s": 0.2, "max_share": 0.9}, **sections)
    raw["models"]["credit"].pop("model")
    raw["models"]["credit"]["factory"] = "tests.integration.large_models:ballast"
    return raw, parse_config(raw)


def send(broker: Broker, config: Config, numbers: range) -> None:
    records = [(b"credit", observation(i, flipped=i > N // 2), []) for i in numbers]
    produce(broker.bootstrap, config.kafka.topics.observations, records, partition=0)


@pytest.mark.parametrize("where", ["changelog", "objects"])
def test_a_state_of_megabytes_survives_sigkill(
    where: str, kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = tmp_path / "volume"
    state = {"key": KEY, **({"url": f"file://{volume}"} if where == "objects" else {})}
    raw, config = configured(kafka_broker, state=state)
    worker = WorkerProcess(raw, tmp_path)
    for done in range(200, N + 1, 200):
        send(kafka_broker, config, range(done - 200, done))
        with worker:
            worker.wait_consumed(done, timeout_s=60)
            if done < N:
                worker.kill()
            else:
                assert worker.stop() == 0
    check_equal(kafka_broker.bootstrap, config)
    keys = [r.key or b"" for r in read_all(kafka_broker.bootstrap, config.kafka.changelog)]
    chunks = {key for key in keys if re.search(rb"\0c[01]\.\d+$", key)}
    objects = [path for path in volume.rglob("*") if path.is_file()]
    if where == "changelog":
        assert len(chunks) >= 2 * 4
        assert not objects
    else:
        assert not chunks
        assert 1 <= len(objects) <= 2, "two generations"

    raw["state"]["key"] = "another " * 4
    with WorkerProcess(raw, tmp_path) as other:
        assert other.wait(60) == 2
    assert "is signed with another key" in other.log_tail
    assert KEY not in other.log.read_text()
    assert KEY not in worker.log.read_text()


def test_a_full_volume_holds_the_observations_up_and_loses_none(
    kafka_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    monkeypatch.setenv("FULL_VOLUME", str(volume))
    raw, config = configured(kafka_broker, state={"url": f"full://{volume}"})
    # The worker knows this kind of volume once it has imported the module.
    import tests.integration.large_models

    assert tests.integration.large_models.FullVolume.protocol == "full"
    send(kafka_broker, config, range(N // 2))
    with WorkerProcess(raw, tmp_path) as worker:
        worker.wait_consumed(N // 2, timeout_s=60)
        (volume / "FULL").touch()
        send(kafka_broker, config, range(N // 2, N))
        wait_for("three attempts", lambda: worker.log.read_text().count("No space left on device") >= 3)
        assert "its partition's observations wait" in worker.log_tail
        (volume / "FULL").unlink()
        worker.wait_consumed(N, timeout_s=90)
        assert worker.stop() == 0
    check_equal(kafka_broker.bootstrap, config)

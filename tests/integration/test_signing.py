"""A group that has run without a key begins to sign; what cannot be read is told in one line that says what to do."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from click.testing import CliRunner
from support.kafka import produce
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.state.admin import read_records, store_of
from attributary_agents.state.names import checkpoint_key
from attributary_agents.state.writing import changelog_writer
from tests.integration.configs import created, observation

pytestmark = pytest.mark.long
N = 200
KEY = "a key of thirty-two characters and more"


def check(raw: dict[str, Any], folder: Path) -> tuple[int, str]:
    path = folder / "check.yaml"
    path.write_text(yaml.safe_dump(raw))
    result = CliRunner().invoke(cli, ["check", "--config", str(path)])
    return result.exit_code, result.output


def refused(raw: dict[str, Any], folder: Path) -> str:
    """The one line with which a worker ends, with exit code 2 and no trace; `check` says the same."""
    worker = WorkerProcess(raw, folder)
    with worker:
        code = worker.wait(60)
    log = worker.log.read_text()
    assert code == 2, log
    assert not re.search(r"Traceback| CRITICAL | ERROR |last checkpoint", log), log
    (line,) = [line for line in log.splitlines() if line.startswith("attributary: ")]
    code, said = check(raw, folder)
    assert code == 2
    assert line.removeprefix("attributary: ") in said
    return line


def begun(broker: Broker, folder: Path) -> tuple[dict[str, Any], Config]:
    """A group without a key, with `N` observations."""
    raw, config = created(broker)
    records = [(b"credit", observation(i), []) for i in range(N)]
    produce(broker.bootstrap, config.kafka.topics.observations, records, partition=0)
    WorkerProcess(raw, folder).run_until(N)
    return raw, config


def test_a_group_that_has_run_begins_to_sign_with_one_start(embedded_broker: Broker, tmp_path: Path) -> None:
    raw, config = begun(embedded_broker, tmp_path)
    assert "accept_unsigned: true" in str(config.state.doubt)

    signing = {**raw, "state": {"key": KEY}}
    said = refused(signing, tmp_path)
    assert re.search(r"checkpoint/0, .* is not signed.*set state\.accept_unsigned: true for the first start", said)

    accepting = {**raw, "state": {"key": KEY, "accept_unsigned": True}}
    assert check(accepting, tmp_path)[0] == 0
    worker = WorkerProcess(accepting, tmp_path)
    worker.start()
    signed = r"partition 0: [2-9] stored states had no signature, and have one now"
    wait_for("all is signed", lambda: re.search(signed, worker.log.read_text()))  # without an observation
    assert worker.stop() == 0

    assert check(signing, tmp_path)[0] == 0
    last = WorkerProcess(signing, tmp_path)
    produce(embedded_broker.bootstrap, config.kafka.topics.observations, [(b"credit", observation(N), [])], partition=0)
    last.run_until(N + 1)
    assert not re.search(r" (WARNING|ERROR) |Traceback", last.log.read_text())


def test_a_checkpoint_of_another_release_is_told_in_one_line(embedded_broker: Broker, tmp_path: Path) -> None:
    raw, config = begun(embedded_broker, tmp_path)

    async def age() -> None:
        records = await read_records(config)
        async with changelog_writer(config) as send:
            store = store_of(config, records, 0, send)
            old = orjson.loads(store.load(checkpoint_key(0)) or b"") | {"format": 1}
            await store.put(checkpoint_key(0), orjson.dumps(old))

    asyncio.run(age())
    said = refused(raw, tmp_path)
    for part in ("its format 1", "another kafka.group", "after the last observation", "attributary topics create"):
        assert part in said

"""`attributary produce` while its only broker goes away, stopped, and gone on with where it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.interrupts import take_interrupts
from support.kafka import read_all
from support.waiting import wait_for

from attributary_agents.demo.brokers import BrokerMissingError, KafkaBroker
from tests.integration.configs import created

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N, RATE = 3000, 500


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker that is killed."""
    broker = KafkaBroker(tmp_path / "broker")
    try:
        broker.start()
    except BrokerMissingError as error:
        # Under CI a missing broker is a broken pipeline; elsewhere it is somebody without Java.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(error))
    with broker:
        yield broker


def several(found: list[Any]) -> list[Any]:
    """The rows in the topic, where they are more than are sent in a second."""
    return found if len(found) > RATE else []


def test_what_was_stopped_while_the_broker_was_away_goes_on_behind_the_last_acknowledged_row(
    own_broker: KafkaBroker, tmp_path: Path
) -> None:
    raw, config = created(own_broker)
    topic = config.kafka.topics.observations
    path, data, said = tmp_path / "attributary.yaml", tmp_path / "data.csv", tmp_path / "said"
    path.write_text(yaml.safe_dump(raw))
    data.write_text("a,b,c,y\n" + "".join(f"{n},{n % 7},{n % 11},{n % 2}\n" for n in range(N)))
    command = [sys.executable, "-m", "attributary_agents.cli", "produce", str(data), "-c", str(path)]
    with (
        said.open("w") as err,
        subprocess.Popen([*command, "--rate", str(RATE)], stderr=err, preexec_fn=take_interrupts) as child,
    ):
        try:
            # A batch is sent once the one before it is acknowledged: of several batches, some are.
            there = wait_for("some rows are there", lambda: several(read_all(own_broker.bootstrap, topic)), 60)
            own_broker.kill()
            wait_for("silence is told", lambda: "have acknowledged nothing for 5 s" in said.read_text(), 30)
            child.send_signal(signal.SIGINT)
            assert child.wait(60) == 2
        finally:
            child.kill()
    told = said.read_text()
    found = re.search(
        rf"The first (\d+) rows are in the topic {re.escape(topic)}: go on with --skip (\d+)\. "
        r"(\d+) further rows were sent and not acknowledged",
        told,
    )
    assert found is not None, told
    n, skip, more = map(int, found.groups())
    # Of what was in the topic before, the broker may have been killed before it acknowledged the last batch.
    assert 0 < n == skip < N
    assert n + more >= len(there)
    own_broker.start()
    done = subprocess.run([*command, "--skip", str(skip)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{N - skip} observations sent" in done.stdout
    rows = [json.loads(record.value)["x"]["a"] for record in read_all(own_broker.bootstrap, topic)]
    first, twice = rows[:skip], rows[skip : len(rows) - (N - skip)]
    assert first == list(range(skip))
    assert twice == list(range(skip, skip + len(twice)))
    assert len(twice) <= more
    assert rows[len(rows) - (N - skip) :] == list(range(skip, N))

"""`attributary dlq`: dead letters are listed, shown, and sent again; each is handled once, however often it is sent."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kafka import create_topics, produce, read_all
from support.processes.forked import run_command
from support.states import stored
from support.waiting import wait_for
from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.demo.brokers import Broker
from attributary_topics import REPLAYED_HEADER, DeadLetter, Source, fit_dead_letter
from tests.agents.stand_ins import balances
from tests.integration.configs import created, observation

pytestmark = [pytest.mark.long, pytest.mark.kafka]

N = 2000
LETTER = DeadLetter(
    b"credit",
    b'{"x": {"a": "\\u001b[31m"}}',
    [("trace", b"\xff")],
    Source("", 0, 1),
    17,
    "decode",
    "wrong_type",
    "E",
    "no",
)


def command(path: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "attributary_agents.cli", "dlq", *arguments, "--config", str(path)]


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Without a terminal, and so with nobody to ask.
    return run_command(["dlq", *arguments, "--config", path])


def written(broker: Broker, topic: str, *letters: DeadLetter) -> None:
    records = [(one.key, one.value, [(name, text or b"") for name, text in one.all_headers()]) for one in letters]
    produce(broker.bootstrap, topic, records, partition=0)


@pytest.fixture(scope="module")
def several(kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A configuration, and dead letters of several kinds: of our topics, of another one, cut, without a record."""
    raw, config = created(kafka_broker)
    topics = config.kafka.topics
    create_topics(kafka_broker.bootstrap, {f"{topics.prefix}-rentals": 1})
    at = LETTER.source
    ours = replace(LETTER, source=replace(at, topic=topics.observations))
    letters = {
        "ours": ours,
        "models": replace(
            LETTER, value=b"{}", reason="unknown_model", source=replace(at, topic=topics.models), headers=[]
        ),
        "origin": replace(LETTER, source=replace(at, topic=f"{topics.prefix}-rentals")),
        "cut": fit_dead_letter(replace(ours, value=b"x" * 9000, source=replace(ours.source, offset=2)), 5000),
        "batch": replace(ours, reason="unreadable_batch", source=replace(ours.source, offset=3)),
        "partition": replace(ours, source=replace(ours.source, partition=7)),
    }
    written(kafka_broker, topics.dead_letters, *letters.values(), ours)
    produce(kafka_broker.bootstrap, topics.dead_letters, [(b"credit", b"no dead letter", [])], partition=0)
    path = tmp_path_factory.mktemp("dlq") / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))
    return path, letters


def test_each_is_listed_once_with_the_counts_by_reason(several: tuple[Path, dict[str, DeadLetter]]) -> None:
    path, letters = several
    done = run(path, "list")
    assert done.stderr.endswith("has 1 records that are no dead letters\n")
    *rows, counts = done.stdout.splitlines()
    assert {row.split("\t")[1] for row in rows} == {letter.id for letter in letters.values()}
    assert {tuple(row.split("\t")[2:]) for row in rows if letters["ours"].id in row} == {
        ("credit", "decode", "wrong_type", "no")
    }
    assert counts.startswith(f"{len(letters)} dead letters; 4 wrong_type (")
    assert "1 unreadable_batch (" in counts
    rows = run(path, "list", "--reason", "unknown_model", "--json").stdout.splitlines()
    (row,) = map(json.loads, rows)
    assert (row["id"], row["replayed"], row["bytes"]) == (letters["models"].id, False, 2)
    assert run(path, "list", "--model", "other").stdout == "0 dead letters\n"
    assert run(path, "list", "--until", "1h").stdout == "0 dead letters\n"
    assert run(path, "list", "--since", "1h", "--last", "1").stdout.count("\n") == 2
    assert "expected a time" in run(path, "list", "--since", "yesterday").stderr


def test_one_is_shown_with_nothing_that_writes_to_a_terminal(several: tuple[Path, dict[str, DeadLetter]]) -> None:
    path, letters = several
    shown = run(path, "show", letters["ours"].id).stdout
    assert "reason: wrong_type\n" in shown
    assert "header trace: \\xff\n" in shown
    assert '\n    "a": "\\u001b[31m"\n' in shown
    assert "\x1b" not in shown
    told = json.loads(run(path, "show", letters["ours"].id, "--json").stdout)
    assert (told["key"], told["headers"]) == ("credit", [["trace", "\\xff"]])
    assert "cut" not in shown
    assert "bytes of its value" in run(path, "show", letters["cut"].id).stdout
    missing = run(path, "show", "nothing:0:0")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "`attributary dlq list` prints the ids" in missing.stderr


def test_what_cannot_be_sent_again_is_named_and_why(several: tuple[Path, dict[str, DeadLetter]]) -> None:
    path, letters = several
    topics = parse_config(yaml.safe_load(path.read_text())).kafka.topics
    done = run(path, "replay", "--dry-run")
    refused = {line.split(": ")[1]: line for line in done.stderr.splitlines()}
    assert refused.keys() == {letters[name].id for name in ("origin", "cut", "batch")}
    assert "lacks" in refused[letters["cut"].id]
    assert "has no record" in refused[letters["batch"].id]
    assert "--to origin" in refused[letters["origin"].id]
    assert done.stdout == f"3 dead letters to send again: 1 to {topics.models}, 2 to {topics.observations}\n"
    assert "say it with --yes" in run(path, "replay").stderr
    assert run(path, "replay", "--id", letters["cut"].id, "--yes").returncode == 1
    assert run(path, "replay", "--id", "nothing:0:0").returncode == 2


def test_each_goes_back_to_where_it_came_from_as_it_was(
    kafka_broker: Broker, several: tuple[Path, dict[str, DeadLetter]]
) -> None:
    path, letters = several
    done = run(path, "replay", "--yes")
    assert done.stdout.splitlines()[-1] == "2 dead letters sent again"
    assert "has no partition 7 any more" in done.stderr
    assert done.returncode == 1
    origin = run(path, "replay", "--to", "origin", "--yes")
    assert "Nothing there guards against sending them twice" in origin.stdout
    for name in ("ours", "models", "origin"):
        letter = letters[name]
        (record,) = read_all(kafka_broker.bootstrap, letter.source.topic)
        assert (record.key, record.value, record.partition) == (letter.key, letter.value, 0)
        assert list(record.headers) == [*letter.headers, (REPLAYED_HEADER, letter.id.encode())]


def test_a_replay_that_is_killed_and_begun_again_counts_each_record_once(kafka_broker: Broker, tmp_path: Path) -> None:
    raw, config = created(kafka_broker)
    topics = config.kafka.topics
    values = [observation(i) for i in range(N)]
    produce(kafka_broker.bootstrap, topics.observations, [(b"late", value, []) for value in values], partition=0)
    WorkerProcess(raw, tmp_path).run_until(N)
    assert len(read_all(kafka_broker.bootstrap, topics.dead_letters)) == N

    raw["models"]["late"] = raw["models"]["credit"]
    config = parse_config(raw)
    path = tmp_path / "attributary.yaml"
    path.write_text(yaml.safe_dump(raw))

    def n_sent() -> int:
        return len(read_all(kafka_broker.bootstrap, topics.observations)) - N

    replaying = subprocess.Popen(command(path, "replay", "--yes"), stdout=subprocess.DEVNULL)
    wait_for("some are sent", lambda: n_sent() > 0, 60)
    replaying.kill()
    replaying.wait()
    first = n_sent()
    assert first > 0
    worker = WorkerProcess(raw, tmp_path)
    with worker:
        # Begun again while a worker handles what the first one has sent, which is killed meanwhile.
        wait_for("some is handled", lambda: worker.total("records_consumed_total") > N + first // 2, 120)
        done = run(path, "replay", "--yes")
        assert done.returncode == 0, done.stderr
        worker.kill()
    with worker:
        worker.wait_consumed(N + n_sent(), timeout_s=120)
        n_repeats = worker.metrics()["attributary_origin_records_total"]
        assert worker.stop() == 0

    found = stored(config)
    counters, offset = found.checkpoints[0]
    assert found.models["late"].n_observations == N
    assert balances(counters)
    assert (counters.consumed, counters.used, offset) == (N + n_sent(), N, N + n_sent() - 1)
    assert counters.replayed.n_repeats == n_sent() - N
    assert n_repeats[("outcome", "replayed_repeat"), ("partition", "0"), ("topic", topics.observations)] == n_sent() - N
    *_, counts = run(path, "list", "--last", "1").stdout.splitlines()
    assert f"{N} of them handled again since" in counts
    assert run(path, "replay", "--yes").stdout.splitlines() == [
        f"{N} dead letters left out: handled again already",
        "0 dead letters to send again",
    ]

"""What the log says of dead letters: the first of a reason, then how many a minute, and nothing out of a record."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import parse_config
from attributary_agents.worker.dead_letter_log import DeadLetterLog
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_topics import REASONS, InvalidRecordError
from tests.agents.stand_ins import TOPIC, TOUCHY_FACTORY, header

CANARY = "4929-1234-5678-9012"
"""Stands for what must be in no log: a value, a key, or a name that the sender chose."""

CONFIG = parse_config(
    {
        "models": {
            "m": {"factory": TOUCHY_FACTORY, "features": {"a": "number", "b": "number", "c": "any"}},
            "open": {"factory": TOUCHY_FACTORY},
        }
    }
)


class Clock:
    """Seconds that a test moves on."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def partition_of(clock: Clock | None = None) -> Partition:
    return Partition(TOPIC, 0, CONFIG, {}.get, dead_letter_log=DeadLetterLog(CONFIG, clock or Clock()))


def records(*pairs: tuple[bytes | None, bytes | None]) -> list[Record]:
    return [Record(TOPIC, 0, i, 0, key, value) for i, (key, value) in enumerate(pairs)]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


GOOD = b'{"x": {"a": 1, "b": 2, "c": "fine"}, "y": true}'
PRIVATE: list[tuple[bytes | None, bytes | None]] = [
    (b"m", f'{{"x": {{"a": "{CANARY}", "b": 1, "c": 1}}, "y": true}}'.encode()),
    (b"m", f'{{"x": {{"{CANARY}": 1}}, "y": true}}'.encode()),
    (b"m", f'{{"x": {{"a": 1}}, "{CANARY}": 1e999}}'.encode()),
    (b"m", f'{{"x": {{"a": 1}}, "y": ["{CANARY}"]}}'.encode()),
    (b"m", f"{{{CANARY}".encode()),
    (b"open", f'{{"x": {{"{CANARY}": []}}, "y": true}}'.encode()),
    (b"open", f'{{"x": {{"{CANARY}": 1e999}}, "y": true}}'.encode()),
    (CANARY.encode(), GOOD),
    (b"\xff" + CANARY.encode(), GOOD),
    (None, CANARY.encode()),
    (b"m", f'{{"x": {{"a": 1, "b": 1, "c": 1}}, "model_id": "{CANARY}", "y": true}}'.encode()),
]


@pytest.mark.parametrize(("key", "value"), PRIVATE)
def test_no_line_has_a_value_or_a_key_or_a_name_of_the_sender_s(
    caplog: pytest.LogCaptureFixture, key: bytes | None, value: bytes | None
) -> None:
    partition = partition_of()
    for record in records(*[(key, value)] * 3):
        (letter,) = partition.handle(record)
        assert header(letter, "attributary-dlq-reason") in REASONS
        assert (letter.key, letter.value) == (key, value), "the topic has the record as it was"
    partition.dead_letter_log.say_rest()
    assert len(lines(caplog)) == 2
    assert CANARY not in caplog.text
    assert "5678" not in caplog.text


def test_of_a_model_s_exception_the_kind_and_place_alone_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    partition = partition_of()
    failing = GOOD.replace(b"fine", b"predict")
    letters = [out for one in records((b"m", GOOD), (b"m", failing)) for out in partition.handle(one)]
    (line,) = lines(caplog)
    assert "model_failed" in line
    assert "model m, at predict: RuntimeError in stand_ins.py, line " in line
    assert "cannot predict this" not in line
    assert "cannot predict this" in header(letters[0], "attributary-dlq-message")


def test_the_first_of_a_reason_is_said_at_once_and_the_others_a_minute_later_by_their_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    log = DeadLetterLog(CONFIG, clock)
    wrong = InvalidRecordError("wrong_type", "x.a", "a finite number", CANARY)
    other = InvalidRecordError("wrong_type", f"x.{CANARY}", "only declared features", CANARY)
    log.note(b"m", "decode", "wrong_type", wrong, "t[0]@17")
    assert lines(caplog) == [
        "dead letter: wrong_type (a field has another type than expected), model m, at decode: x.a; "
        "attributary.dead-letters.v1 has the record, t[0]@17"
    ]
    for i in range(12):
        clock.now += 4
        log.note(b"m", "decode", "wrong_type", wrong if i % 3 else other, f"t[0]@{18 + i}")
        log.say_due()
    assert len(lines(caplog)) == 1
    clock.now += 12
    log.say_due()
    assert lines(caplog)[1:] == [
        "12 more dead letters in 60 s: wrong_type (a field has another type than expected), model m, at decode: x.a: 8"
        "; model m, at decode: a feature that is not declared: 4"
    ]
    # Nothing comes for a minute: the next one is the first again.
    clock.now += 60
    log.say_due()
    log.note(b"m", "decode", "wrong_type", wrong, "t[0]@40")
    assert lines(caplog)[2].startswith("dead letter: wrong_type")


def test_what_is_held_back_is_said_at_the_stop_once(caplog: pytest.LogCaptureFixture) -> None:
    log = DeadLetterLog(CONFIG, Clock())
    for reason in ("wrong_type", "wrong_type", "missing_label", "wrong_type"):
        log.note(b"m", "decode", reason, InvalidRecordError(reason, "y", "a label", None), "t[0]@1")
    log.say_rest()
    log.say_rest()
    assert [line.split(",")[0] for line in lines(caplog)] == [
        "dead letter: wrong_type (a field has another type than expected)",
        "dead letter: missing_label (the observation has no label or target)",
        "2 more dead letters in 0 s: wrong_type (a field has another type than expected)",
    ]


def test_a_flood_of_a_thousand_models_is_a_line_a_minute_and_counts_add_up(caplog: pytest.LogCaptureFixture) -> None:
    config = parse_config({"models": {f"m{i}": {"factory": TOUCHY_FACTORY} for i in range(1000)}})
    clock = Clock()
    log = DeadLetterLog(config, clock)
    for n in range(50_001):
        clock.now = 1000 + n / 500
        error = InvalidRecordError("wrong_type", "x.a", "a number", n)
        log.note(f"m{n % 1000}".encode(), "decode", "wrong_type", error, f"t[0]@{n}")
    log.say_rest()
    said = lines(caplog)
    assert len(said) == 3
    assert sum(int(line.split()[0]) for line in said[1:]) == 50_000
    assert all(len(line) < 400 for line in said)


def test_a_replay_says_how_many_there_were_and_nothing_of_what_was_in_them(tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "attributary.yaml").write_text(json.dumps({"models": {"m": {"factory": TOUCHY_FACTORY}}}))
    row = json.dumps({"x": {"a": [CANARY]}, "y": True})
    (tmp_path / "data.jsonl").write_text(f"{row}\n" * 40)
    command = ["replay", str(tmp_path / "data.jsonl"), "-c", str(tmp_path / "attributary.yaml")]
    done = CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "out")])
    assert [line.split(":")[0] for line in done.stderr.splitlines() if "dead letter" in line][-2:]
    assert "39 more dead letters in 0 s: wrong_type" in done.stderr
    assert CANARY not in done.stderr

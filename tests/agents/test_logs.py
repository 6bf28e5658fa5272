"""What the log leaves out."""

from __future__ import annotations

import logging
import sys

from attributary_agents.logs import REPEATED_AFTER_S, Repetitions


def record(message: str, *args: object, name: str = "aiokafka", exc_info: object = None) -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, "", 0, message, args, exc_info)  # type: ignore[arg-type]


def test_a_repeated_line_of_a_library_comes_again_after_a_while_with_its_count() -> None:
    now = 100.0
    held = Repetitions(lambda: now)
    assert held.filter(record("cannot connect to %s", "one"))
    assert [held.filter(record("cannot connect to %s", node)) for node in ("one", "two", "one")] == [False] * 3
    now += REPEATED_AFTER_S
    again = record("cannot connect to %s", "two")
    assert held.filter(again)
    assert again.getMessage() == "cannot connect to two (and 3 more like this)"
    now += REPEATED_AFTER_S
    alone = record("cannot connect to %s", "two")
    assert held.filter(alone)
    assert alone.getMessage() == "cannot connect to two"


def test_other_texts_our_own_lines_and_tracebacks_are_never_held_back() -> None:
    held = Repetitions(lambda: 0.0)
    for message in ("no leader", "no coordinator", "no metadata"):
        assert held.filter(record(message))
    for _ in range(3):
        assert held.filter(record("dead letter", name="attributary_agents.worker.records"))
    try:
        raise ValueError("with a traceback")
    except ValueError:
        for _ in range(3):
            assert held.filter(record("no leader", exc_info=sys.exc_info()))

"""The series of sources are of those that are mapped here, and end when another process maps them."""

from __future__ import annotations

import time

import pytest

from attributary_agents.monitoring.metrics import SOURCE_METRICS, AttributaryCollector
from attributary_agents.sources.mappers.board import SourcesBoard
from attributary_agents.worker.view import WorkerView
from tests.agents.stand_ins import config_of


def series(board: SourcesBoard) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in AttributaryCollector(config_of(), WorkerView({}), board).collect():
        for sample in family.samples:
            name = sample.name.removeprefix("attributary_")
            if name in SOURCE_METRICS:
                found.setdefault(name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_they_are_what_the_board_says() -> None:
    board = SourcesBoard()
    section = board.open("rentals")
    section.counts.update(mapped=7, dead=1)
    section.lags[("topic", 3)] = 5
    section.is_waiting = lambda: True
    section.last_time_ms = round((time.time() - 100) * 1000)
    found = series(board)
    assert found["source_records_total"] == {
        ("rentals", "mapped"): 7, ("rentals", "filtered"): 0, ("rentals", "dead"): 1,
    }  # fmt: skip
    assert found["source_lag_records"] == {("rentals", "topic", "3"): 5}
    assert found["source_waiting_registry"] == {("rentals",): 1}
    assert found["source_time_lag_seconds"][("rentals",)] == pytest.approx(100, abs=60)


def test_a_source_whose_records_are_all_mapped_is_not_behind_however_old_the_last_one_is() -> None:
    board = SourcesBoard()
    section = board.open("rentals")
    assert "source_time_lag_seconds" not in series(board), "nothing is known before the first record"
    section.last_time_ms, section.lags = 0, {("topic", 3): 0}
    assert series(board)["source_time_lag_seconds"] == {("rentals",): 0}


def test_they_end_with_the_mapping_here_and_the_total_stays() -> None:
    board = SourcesBoard()
    board.open("rentals").counts.update(mapped=7)
    board.close("rentals")
    board.close("rentals")
    assert series(board) == {}
    board.open("rentals").counts.update(mapped=2, dead=1)
    assert board.total == {"mapped": 9, "dead": 1}

"""Progress where stderr is no terminal: a line every ten seconds, and none for what takes less."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from attributary_agents.cli import progress as shown
from attributary_agents.cli.main import cli
from tests.agents.replay.conftest import write_config, write_csv


def lines(result_stderr: str, what: str) -> list[str]:
    return [line for line in result_stderr.splitlines() if line.startswith(f"{what}: ")]


def replayed(folder: Path, *arguments: str) -> str:
    config, data = write_config(folder / "attributary.yaml"), write_csv(folder / "data.csv")
    arguments = ("replay", str(data), "-c", str(config), "--out", str(folder / "out"), *arguments)
    return CliRunner().invoke(cli, arguments, catch_exceptions=False).stderr


def test_a_long_replay_says_every_ten_seconds_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds() -> Iterator[float]:
        now = 100.0
        while True:
            yield now
            now += 4.0  # for each 50 rows

    monkeypatch.setattr(shown.progress.__wrapped__, "__kwdefaults__", {"clock": seconds().__next__})
    assert lines(replayed(tmp_path), "replay") == [
        "replay: 150 of 400 rows, 0 incidents, 12 s",
        "replay: 300 of 400 rows, 1 incident, 24 s",
    ]


def test_a_short_replay_says_nothing_of_its_progress(tmp_path: Path) -> None:
    assert lines(replayed(tmp_path, "--limit", "60"), "replay") == []


def test_where_the_rows_are_many_or_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with (
        shown.progress("produce", 45_312, clock=lambda: now) as one,
        shown.progress("x", None, clock=lambda: now) as two,
    ):
        one(1)
        now = 40.4
        one(12_000)
        two(5, "2 changes")
    assert capsys.readouterr().err.splitlines() == [
        "produce: 12 000 of 45 312 rows, 40 s",
        "x: 5 rows, 2 changes, 40 s",
    ]

"""What may pass is tried again with pauses, and told once; what does not pass is refused, and says so at once."""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.mlflow import Registered
from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError, DeploymentError, FilesAwayError, RegistryAwayError
from attributary_agents.worker import version_files
from attributary_agents.worker.aliases import RegistryBoard
from attributary_agents.worker.version_files import Files, fetched
from attributary_topics import Deployment

RECORD = Deployment("m", "4", {"mlflow": "models:/bank/4", "sha256": "4" * 64})
AWAY = FilesAwayError("models:/bank/4: its files cannot be had: no route to the bucket")


def config(**given: Any) -> Config:
    return parse_config({"models": {"m": {"model": {"mlflow": "models:/bank@a"}, "learn": False}}, "mlflow": given})


class Registry:
    """Stands in for MLflow's registry: answers, one after the other, of which the last one lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.pauses: list[float] = []
        self.seen: list[list[str]] = []
        """What lay in the folder at each question."""
        monkeypatch.setattr(version_files, "Registry", lambda _config: self)
        monkeypatch.setattr(version_files.asyncio, "sleep", self.sleep)
        monkeypatch.setattr(version_files.random, "uniform", lambda _low, _high: 1.0)
        monkeypatch.setattr(version_files.time, "monotonic", lambda: 1000.0 + sum(self.pauses))

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def fetch(self, registered: Registered, folder: Path) -> str:
        assert str(registered) == "models:/bank/4"
        self.seen.append([path.name for path in folder.iterdir()])
        (folder / f"part-{len(self.seen)}").touch()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def take(board: RegistryBoard, chosen: Config | None = None) -> tuple[Files, list[str]]:
    """Return what is given, and the files that are there meanwhile."""

    async def run() -> tuple[Files, list[str]]:
        async with fetched(chosen or config(), RECORD, board) as files:
            return files, [] if files.folder is None else [path.name for path in files.folder.iterdir()]

    return asyncio.run(run())


def test_a_store_that_comes_back_is_asked_until_then_and_told_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    registry, board = Registry(monkeypatch, *[AWAY] * 8, "4" * 64), RegistryBoard()
    seen: list[bool] = []
    whole = registry.sleep

    async def sleep(seconds: float) -> None:
        seen.append("m" in board.retried and board.is_up is True)
        await whole(seconds)

    monkeypatch.setattr(version_files.asyncio, "sleep", sleep)
    with caplog.at_level(logging.INFO, "attributary_agents"):
        files, names = take(board)
    assert files.error is None
    assert names == ["part-9"], "nothing of a try that failed is among the files"
    assert registry.seen == [[]] * 9
    assert registry.pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert seen == [True] * 8, "the registry itself is up"
    assert board.retried == {}
    assert [record.message for record in caplog.records] == [
        f"model m: {AWAY}; it is tried again, and the model keeps what it has meanwhile",
        "model m: no version is tried again any more",
    ]


def test_a_store_that_stays_away_has_the_version_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, board = Registry(monkeypatch, AWAY), RegistryBoard()
    files, _ = take(board, config(retry_within="60s"))
    assert (files.folder, board.retried) == (None, {})
    assert files.error is not None
    assert files.error.reason == "wrong_artefact"
    assert str(files.error) == f"{AWAY}; tried for 60 s (mlflow.retry_within)"
    assert registry.pauses == [1, 2, 4, 8, 16, 30]


def test_a_registry_that_is_away_is_waited_for_beyond_that(monkeypatch: pytest.MonkeyPatch) -> None:
    away = [RegistryAwayError("refused"), ConfigError("mlflow.password_file: cannot read it")]
    registry, board = Registry(monkeypatch, *away * 50, "4" * 64), RegistryBoard()
    files, _ = take(board, config(retry_within="60s"))
    assert files.error is None
    assert sum(registry.pauses) > 2000


@pytest.mark.parametrize("n", [1, 3])
def test_files_that_came_in_part_are_fetched_anew(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch, *["0" * 64] * n, "4" * 64)
    files, names = take(RegistryBoard())
    assert (files.error, names, len(registry.pauses)) == (None, [f"part-{n + 1}"], n)


def test_files_that_are_others_are_left_to_who_builds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, board = Registry(monkeypatch, "0" * 64), RegistryBoard()
    files, names = take(board)
    assert (files.error, names) == (None, ["part-4"])
    assert (len(registry.pauses), board.retried) == (3, {})


def test_what_the_registry_lacks_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(monkeypatch, DeploymentError("no version 4", "wrong_artefact"))
    files, _ = take(RegistryBoard())
    assert str(files.error) == "no version 4"
    assert registry.pauses == []


def test_files_that_take_too_long_are_away_and_the_registry_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A registry that is away is waited for without an end, which would be wrong for a version that is too large."""
    ended = threading.Event()

    class Slow:
        def fetch(self, _registered: Registered, _folder: Path) -> str:
            ended.wait(20)
            return "4" * 64

    monkeypatch.setattr(version_files, "Registry", lambda _config: Slow())
    with pytest.raises(FilesAwayError) as caught:
        asyncio.run(version_files.fetch(config(fetch_within="100ms"), RECORD.spec, tmp_path / "0"))
    ended.set()
    late = "its files have not come within 0.1 s: raise mlflow.fetch_within if they are large"
    assert str(caught.value) == f"models:/bank/4: {late}"


def test_a_partition_that_goes_leaves_no_alert_behind_that_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    board = RegistryBoard()
    registry = Registry(monkeypatch, RegistryAwayError("refused"))
    board.note_retried("other", "no bucket")

    async def sleep(_seconds: float) -> None:
        registry.pauses.append(0.0)
        assert board.is_up is False
        raise asyncio.CancelledError

    monkeypatch.setattr(version_files.asyncio, "sleep", sleep)
    with suppress(asyncio.CancelledError):
        take(board)
    assert (registry.pauses, board.is_up, board.answered_at) == ([0.0], None, None)
    assert list(board.retried) == ["other"]
    board.looks = True
    with suppress(asyncio.CancelledError):
        take(board)
    assert board.is_up is False, "this process looks at aliases, and will see it up again"

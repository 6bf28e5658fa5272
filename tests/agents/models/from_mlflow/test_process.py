"""A process that does not answer is ended, and what that means depends on what it was asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from attributary_agents.config.given.mlflow import MlflowConfig, Registered
from attributary_agents.errors import FilesAwayError, RegistryAwayError
from attributary_agents.models.from_mlflow import process as module
from attributary_agents.models.from_mlflow.process import RegistryProcess


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> RegistryProcess:
    monkeypatch.setattr(module, "_BOOTSTRAP", "import time; time.sleep(600)")
    monkeypatch.setattr(module, "ASKED_WITHIN_S", 0.2)
    return RegistryProcess(MlflowConfig(fetch_within=0.2))


def test_a_question_without_an_answer_is_a_registry_that_is_away(silent: RegistryProcess) -> None:
    async def run() -> None:
        with pytest.raises(RegistryAwayError, match=r"^no answer within 0\.2 s$"):
            await silent.resolve([Registered.read("models:/bank@champion")])
        assert silent._process is None, "a later question begins another one"

    asyncio.run(run())


def test_files_that_take_too_long_are_not(silent: RegistryProcess, tmp_path: Path) -> None:
    """A registry that is away is waited for without an end, which would be wrong for a version that is too large."""

    async def run() -> None:
        with pytest.raises(FilesAwayError, match=r"not come within 0\.2 s: raise mlflow\.fetch_within") as caught:
            await silent.fetch("models:/bank/4", str(tmp_path))
        assert not isinstance(caught.value, RegistryAwayError)
        assert silent._process is None

    asyncio.run(run())

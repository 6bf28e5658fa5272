"""A process that does not answer is ended, and what that means depends on what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.mlflow import MlflowConfig, Registered
from attributary_agents.errors import ConfigError, DeploymentError, FilesAwayError, RegistryAwayError
from attributary_agents.models.from_mlflow import process as module
from attributary_agents.models.from_mlflow.answers import digest_in, resolved
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


def test_a_secret_that_is_gone_begins_no_process_and_is_told_each_time(tmp_path: Path) -> None:
    asked = RegistryProcess(MlflowConfig(username="me", password_file=tmp_path / "gone"))

    async def run() -> None:
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"^mlflow\.password_file: cannot read "):
                await asked.resolve([Registered.read("models:/bank@champion")])
            assert asked._process is None

    asyncio.run(run())


def test_what_the_client_says_is_told_without_passwords_and_signatures() -> None:
    named = Registered.read("models:/bank/4")
    said = "403 for url: https://me:SECRET@store/4/MLmodel?X-Amz-Signature=SECRET and ftp://u:SECRET@h/a"
    asks: tuple[Callable[..., Any], ...] = (resolved, digest_in)
    for answer in ({"unfetched": said}, {"lacks": "files", "said": said}, {"away": said}):
        for ask in asks:
            try:
                told = str(ask(named, answer))
            except (DeploymentError, FilesAwayError, RegistryAwayError) as error:
                told = str(error)
            except KeyError:  # files are not fetched where a version is resolved
                continue
            assert "SECRET" not in told
            assert "https://***@store/4/MLmodel?*** and ftp://***@h/a" in told

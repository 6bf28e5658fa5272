"""A separate process that asks MLflow's registry."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import orjson

from ...config.mlflow import MlflowConfig, Registered
from ...errors import FilesAwayError, RegistryAwayError
from .answers import digest_in, question, resolved

_BOOTSTRAP = (
    "import json, sys; job = json.loads(sys.argv[1]); sys.path[:] = job['path']; "
    "from attributary_agents.models.subprocess.child import end_with_parent; end_with_parent(); "
    "from attributary_agents.models.from_mlflow.asking import main; main()"
)

ASKED_WITHIN_S = 60.0
"""Longest wait for answers about aliases: the first one has an import of some seconds before it."""

_LONGEST_LINE = 2**24


class _NoAnswerError(RegistryAwayError):
    """The process that asks has not answered in time."""


class RegistryProcess:
    """A separate process with MLflow's client.

    It begins with the first question and ends with `close`, or with this process.
    """

    def __init__(self, config: MlflowConfig) -> None:
        self._config = config
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> RegistryProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def resolve(self, wanted: Sequence[Registered]) -> list[dict[str, str]]:
        """Return `{"version": …}` or `{"missing": …}` for each of these.

        Raises
        ------
        RegistryAwayError
            The registry cannot be asked now.
        ConfigError
            The file of a secret cannot be read.
        """
        answers = await self._ask({"resolve": [question(one) for one in wanted]}, ASKED_WITHIN_S)
        return [resolved(one, answer) for one, answer in zip(wanted, answers, strict=True)]

    async def fetch(self, uri: str, into: str) -> str:
        """Fetch the files of a version into an empty folder; return their digest.

        Raises
        ------
        RegistryAwayError, ConfigError
            As for `resolve`.
        FilesAwayError
            It has the version, and its files cannot be had now.
        DeploymentError
            It has no such version.
        """
        wanted = Registered.read(uri)
        within_s = self._config.fetch_within
        try:
            answer = await self._ask({"fetch": question(wanted), "into": into}, within_s)
        except _NoAnswerError:  # a registry that is away says so earlier
            told = (
                f"{wanted}: its files have not come within {within_s:g} s: raise mlflow.fetch_within if they are large"
            )
            raise FilesAwayError(told) from None
        return digest_in(wanted, answer)

    async def _ask(self, question: dict[str, Any], within_s: float) -> Any:
        try:
            async with asyncio.timeout(within_s):
                process = await self._started()
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(orjson.dumps(question) + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
        except TimeoutError:
            await self.close()
            raise _NoAnswerError(f"no answer within {within_s:g} s") from None
        except (OSError, ValueError) as error:  # it has ended, or its line is too long
            await self.close()
            raise RegistryAwayError(f"{type(error).__name__} of the process that asks") from None
        except asyncio.CancelledError:
            await self.close()
            raise
        if not line.endswith(b"\n"):
            status = await process.wait()
            await self.close()
            raise RegistryAwayError(f"the process that asks ended with status {status}")
        return orjson.loads(line)

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None:
            settings = orjson.dumps(self._config.environment())  # before: a file of a secret may not be there
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-c",
                _BOOTSTRAP,
                json.dumps({"path": sys.path}),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
            assert self._process.stdin is not None
            self._process.stdin.write(settings + b"\n")
        return self._process

    async def close(self) -> None:
        """End the process; the next question starts it again."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()

"""Work in a process of its own: what it gives back, and how it ends where it does not."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.errors import DeploymentError
from attributary_agents.models.deployments import Job, prepare
from attributary_agents.models.subprocess.build import build
from attributary_agents.models.subprocess.memory import memory_in_use, memory_there_is
from attributary_agents.models.subprocess.process import ApartError, run_apart
from attributary_explainers import load_model
from attributary_topics import Deployment
from tests.agents.stand_ins import FACTORY, CountingClassifier

HERE = "tests.agents.models.test_subprocess"
WORK = "tests.agents.models.subprocess_work:work"
TREE = {"class": "river.tree.HoeffdingTreeClassifier", "params": {"grace_period": 7}}
LIMITS: dict[str, Any] = {"within_s": 100.0, "memory": 600_000_000, "max_bytes": 1000}


def done(what: str, **limits: Any) -> bytes:
    return asyncio.run(run_apart(WORK, what.encode(), **{**LIMITS, **limits}))


def test_the_result_comes_back_whatever_is_printed() -> None:
    assert done("echo abc") == b"cba"
    assert done("print") == b"answer"


@pytest.mark.parametrize(
    ("what", "kind", "said"),
    [
        ("kill", "ended", "SIGKILL"),
        ("exit", "ended", "status 3"),
        ("raise", "failed", "ValueError in subprocess_work.py"),
        ("memory", "memory", "memory"),
        ("size", "size", "1000 bytes"),
        ("nothing", "start", "KeyError"),
    ],
)
def test_how_it_ended_is_told_without_a_foreign_text(what: str, kind: str, said: str) -> None:
    with pytest.raises(ApartError, match=said) as caught:
        done(what)
    assert caught.value.kind == kind
    assert "secret" not in str(caught.value)


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(ApartError, match="more than") as caught:
        done("wait", within_s=2.0)
    assert caught.value.kind in ("time", "start")  # a machine under load may not have begun by then


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    assert done(f"child {tmp_path}") == b"left"
    child = int((tmp_path / "child").read_text())
    while Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
        time.sleep(0.01)


def test_where_the_caller_is_cancelled_the_process_ends() -> None:
    async def run() -> None:
        task = asyncio.create_task(run_apart(WORK, b"wait", **LIMITS))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_the_work_begins_when_that_is_noted(tmp_path: Path) -> None:
    seen = []

    async def begun() -> None:
        await asyncio.sleep(0.2)
        seen.append((tmp_path / "child").exists())

    assert asyncio.run(run_apart(WORK, f"child {tmp_path}".encode(), **LIMITS, begun=begun)) == b"left"
    assert seen == [False], "once, and before the work"


def test_what_cannot_be_noted_is_not_begun(tmp_path: Path) -> None:
    async def begun() -> None:
        raise DeploymentError("no broker")

    with pytest.raises(DeploymentError, match="no broker"):
        asyncio.run(run_apart(WORK, f"child {tmp_path}".encode(), **LIMITS, begun=begun))
    assert not (tmp_path / "child").exists()


@pytest.mark.parametrize("what", ["nothing", "absent"])
def test_what_never_is_ready_does_not_begin(what: str) -> None:
    async def begun() -> None:
        raise AssertionError

    with pytest.raises(ApartError) as caught:
        asyncio.run(run_apart(WORK if what == "nothing" else "tests.no:work", what.encode(), **LIMITS, begun=begun))
    assert caught.value.kind == "start"


def test_the_memory_of_a_container_counts_before_that_of_the_machine(tmp_path: Path) -> None:
    whole = memory_there_is(tmp_path)
    assert whole is not None
    assert whole > memory_in_use() > 0
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    limit = tmp_path / "sys/fs/cgroup/memory.max"
    limit.write_text("max\n")
    assert memory_there_is(tmp_path) == whole
    limit.write_text("1000000\n")
    assert memory_there_is(tmp_path) == 1_000_000


# Models of deployments.


class EndsWhenMade(CountingClassifier):
    def __init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Huge(CountingClassifier):
    def __init__(self) -> None:
        super().__init__()
        self.much = bytearray(2_000_000_000)


def built(spec: dict[str, Any], **control: Any) -> bytes:
    limits = {"allowed": ["river.", HERE], "build_within_s": 300, **control}
    config = parse_config({"models": {"m": {"factory": FACTORY}}, "control": limits})
    return asyncio.run(build(config, Deployment("m", "2", spec)))


@pytest.mark.long
def test_a_model_is_the_one_that_this_process_would_build() -> None:
    blob = built({"model": TREE})
    config = parse_config({"models": {"m": {"factory": FACTORY}}})
    assert blob == prepare(Job.of(config, Deployment("m", "2", {"model": TREE})))
    assert load_model(blob).grace_period == 7


@pytest.mark.parametrize(
    ("spec", "control", "reason", "said"),
    [
        ({"model": {"class": f"{HERE}.EndsWhenMade"}}, {}, "unusable_model", "SIGKILL"),
        pytest.param(
            {"model": TREE},
            {"max_model_bytes": 100},
            "unusable_model",
            "control.max_model_bytes",
            marks=pytest.mark.long,
        ),
        pytest.param({"model": {"class": "os.abort"}}, {}, "not_allowed", "control.allowed", marks=pytest.mark.long),
        pytest.param(
            {"model": {"class": f"{HERE}.Huge"}},
            {"build_memory": 400_000_000},
            "unusable_model",
            "control.build_memory",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_deployment_that_cannot_be_built_says_which_limit(
    spec: dict[str, Any], control: dict[str, Any], reason: str, said: str
) -> None:
    with pytest.raises(DeploymentError, match=said) as caught:
        built(spec, **control)
    assert caught.value.reason == reason

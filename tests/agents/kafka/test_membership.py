"""A worker's name in the group: whom it gives way to."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from attributary_agents.errors import PreflightError
from attributary_agents.kafka import membership
from attributary_agents.kafka.membership import check_name, client_id
from tests.agents.stand_ins import config_of


def test_a_client_id_names_host_and_process() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()  # of what has ended there is no start
    assert client_id(ended.pid, "worker-0") == f"attributary-worker-0-{ended.pid}"
    assert client_id(ended.pid, "a host/with anything") == f"attributary-a_host_with_anything-{ended.pid}"
    assert re.fullmatch(rf".+-{os.getpid()}(\.\d+)?", client_id())


def test_a_worker_gives_way_to_one_on_another_host_and_to_one_that_is_still_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert refusal(monkeypatch, "w-0", client_id(os.getppid())), "of this host, and still there"
    assert refusal(monkeypatch, "w-0", client_id(os.getpid(), "another-host"))
    assert not refusal(monkeypatch, "w-0", client_id(ended.pid)), "of this host, and gone"
    assert not refusal(monkeypatch, "w-0", client_id()), "a container's first process, started again"
    assert not refusal(monkeypatch, "w-0", "rdkafka"), "nothing is known of it"
    assert not refusal(monkeypatch, "w-1", client_id(os.getppid())), "another name"
    assert not refusal(monkeypatch, "w-0-1", client_id(os.getppid())), "one that begins alike"
    assert not refusal(monkeypatch, "w-0", client_id(os.getppid()), name=None)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the start of a process is known on Linux alone")
def test_a_process_that_has_the_number_of_one_that_ended_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there = client_id(os.getppid())
    assert refusal(monkeypatch, "w-0", there)
    assert not refusal(monkeypatch, "w-0", there.rpartition(".")[0] + ".1")
    assert refusal(monkeypatch, "w-0", there.rpartition(".")[0]), "of a release that does not tell its start"


def test_what_a_refused_worker_says_names_the_other_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal(monkeypatch, "w-0", "attributary-elsewhere-7")
    assert said.startswith("kafka.instance_id: 'w-0' is a member of the group attributary already: ")
    assert "attributary-elsewhere-7 at 10.0.0.7" in said
    assert "60 s later (kafka.session_timeout_s)" in said


def refusal(monkeypatch: pytest.MonkeyPatch, member: str, its_client: str, name: str | None = "w-0") -> str:
    """What a worker with the name says of a group with this member; empty where it starts."""

    async def describe(_groups: list[str]) -> list[Any]:
        found = (f"{member}-{uuid.uuid4()}", its_client, "/10.0.0.7", b"", b"")
        return [SimpleNamespace(groups=[(0, "attributary", "Stable", "consumer", "faust", [found])])]

    def with_admin(_kafka: Any, work: Callable[[Any], Any]) -> Any:
        return asyncio.run(work(SimpleNamespace(describe_consumer_groups=describe)))

    monkeypatch.setattr(membership, "with_admin", with_admin)
    config = config_of()
    kafka = config.kafka.model_copy(update={"instance_id": name})
    try:
        check_name(config.model_copy(update={"kafka": kafka}))
    except PreflightError as error:
        return str(error)
    return ""

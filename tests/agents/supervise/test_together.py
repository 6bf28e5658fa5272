"""How many workers run on a machine, and what each has of the common configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import AttributaryError
from attributary_agents.models.apart.memory import memory_there_is
from attributary_agents.supervise.together import AUTO, as_one_of, count_workers, processors
from tests.agents.stand_ins import FACTORY


def config(**sections: Any) -> Config:
    return parse_config({"models": {"m": {"factory": FACTORY}}, **sections})


def test_more_workers_than_partitions_are_refused_with_what_to_do() -> None:
    three = config(kafka={"partitions": 3})
    assert [count_workers(n, three) for n in (1, 2, 3)] == [1, 2, 3]
    with pytest.raises(AttributaryError, match=r"--workers 5: .* has 3 partitions.* 2 of them would have nothing"):
        count_workers(5, three)


def test_auto_is_one_for_each_processor_and_at_most_one_for_each_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attributary_agents.supervise.together.processors", lambda: 6)
    assert [count_workers(AUTO, config(kafka={"partitions": n})) for n in (1, 4, 60)] == [1, 4, 6]


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 9), ("250000 100000", 2), ("50000 100000", 1), ("", 9), (None, 9)]
)
def test_a_container_has_the_processors_of_its_quota(
    quota: str | None, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(9)), raising=False)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    if quota is not None:
        (tmp_path / "sys/fs/cgroup/cpu.max").write_text(quota)
    assert processors(tmp_path) == expected


def test_each_worker_has_a_name_of_its_own_where_the_machine_has_one() -> None:
    assert [as_one_of(config(), n, 2).kafka.instance_id for n in (0, 1)] == [None, None]
    named = config(kafka={"instance_id": "rack-7"})
    assert [as_one_of(named, n, 2).kafka.instance_id for n in (0, 1)] == ["rack-7.0", "rack-7.1"]
    assert as_one_of(named, 0, 2).kafka.topics == named.kafka.topics


def test_memory_to_build_a_version_is_divided_unless_it_is_configured() -> None:
    there_is = memory_there_is()
    assert there_is is not None
    assert as_one_of(config(), 1, 2).control.build_memory == max(there_is // 4, 300_000_000)
    own = config(control={"build_memory": 400_000_000})
    assert as_one_of(own, 1, 2).control.build_memory == 400_000_000

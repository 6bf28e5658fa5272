"""Says how many workers a machine runs, and what each of them has of the common configuration."""

from __future__ import annotations

import os
from pathlib import Path

from ..config.settings import Config
from ..errors import AttributaryError
from ..models.apart.memory import memory_there_is

AUTO = "auto"
"""As many workers as there are processors, and at most as there are partitions."""


def count_workers(asked: int | str, config: Config) -> int:
    """Return how many workers run here.

    Parameters
    ----------
    asked
        A number, or `AUTO`.

    Raises
    ------
    AttributaryError
        There are fewer partitions. One more worker on another machine would stand by for one that fails; on this
        machine it would only wait and take memory, since a worker that fails is started again.
    """
    partitions = config.kafka.partitions
    if isinstance(asked, str):
        return min(processors(), partitions)
    if asked > partitions:
        have, idle = f"{partitions} partition{'s' * (partitions != 1)}", asked - partitions
        raise AttributaryError(
            f"--workers {asked}: {config.kafka.topics.observations} has {have}, and a partition is at one worker at a "
            f"time: {idle} of them would have nothing to do. Run {partitions} or fewer, or add partitions to the "
            "topics and set kafka.partitions"
        )
    return asked


def processors(root: Path = Path("/")) -> int:
    """Return how many processors this process may use, at least 1: those of its container, or of the machine."""
    has = getattr(os, "sched_getaffinity", lambda _pid: range(os.cpu_count() or 1))
    n = len(has(0))
    try:
        quota, period = (root / "sys/fs/cgroup/cpu.max").read_text().split()
        n = min(n, int(quota) // int(period))
    except (OSError, ValueError):  # no container of version 2, or one without a limit
        pass
    return max(n, 1)


def as_one_of(config: Config, number: int, n: int) -> Config:
    """Return the configuration of worker `number`, from 0, of n on this machine.

    Where the machine has a name in the group, each worker has one of its own, `name.number`. What one worker may take
    of the memory to build a new version is divided among them, where no number of bytes is configured.
    """
    kafka, control = config.kafka, config.control
    if kafka.instance_id is not None:
        kafka = kafka.model_copy(update={"instance_id": f"{kafka.instance_id}.{number}"})
    if control.build_memory is None and (there_is := memory_there_is()) is not None:
        control = control.model_copy(update={"build_memory": max(there_is // 2 // n, _LEAST_BUILD_MEMORY)})
    return config.model_copy(update={"kafka": kafka, "control": control})


_LEAST_BUILD_MEMORY = 300_000_000
"""As for control.build_memory: River and numpy need as much."""

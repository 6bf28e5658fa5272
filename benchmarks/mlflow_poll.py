"""What following an alias of MLflow's registry costs: `python -m benchmarks.mlflow_poll`, on a registry on SQLite.

The process that asks is the worker's own (`models/from_mlflow/process.py`); its processor time and memory are read
from /proc, so this is for Linux.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from support.models.mlflow_registry import MlflowRegistry

from attributary_agents.config.mlflow import MlflowConfig, Registered
from attributary_agents.models.from_mlflow.process import RegistryProcess

N = 100


def _used(pid: int) -> tuple[float, float]:
    """Seconds of processor time that a process has used, and the MB that it holds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return (int(fields[11]) + int(fields[12])) / tick, int(fields[21]) * page / 1e6


async def _measure(registry: MlflowRegistry, folder: Path) -> None:
    alias, version = Registered("bank", alias="champion"), Registered("bank", version="1")
    async with RegistryProcess(MlflowConfig(tracking_uri=registry.uri)) as process:
        began = time.perf_counter()
        await process.resolve([alias])
        assert process._process is not None
        pid = process._process.pid
        first, _ = _used(pid)
        print(f"the first look: {time.perf_counter() - began:.1f} s, {first:.1f} s of processor time; once a term")
        began, before = time.perf_counter(), _used(pid)[0]
        for _ in range(N):
            await process.resolve([alias])
        used, held = _used(pid)
        each = 1000 * (used - before) / N
        took = 1000 * (time.perf_counter() - began) / N
        print(f"each further look: {took:.1f} ms, {each:.1f} ms of processor time; {held:.0f} MB are held meanwhile")
        print(f"at poll: 60s that is {each / 60_000:.5%} of a processor")
        began, before = time.perf_counter(), _used(pid)[0]
        await process.fetch(str(version), str(folder))
        took, cpu = time.perf_counter() - began, _used(pid)[0] - before
        print(f"fetching a small version with its digest: {1000 * took:.0f} ms, {1000 * cpu:.0f} ms of processor time")


def main() -> None:
    """Make a registry with one model, and measure."""
    from sklearn.linear_model import LogisticRegression

    with TemporaryDirectory() as scratch:
        registry = MlflowRegistry(Path(scratch))
        model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
        registry.point("bank", "champion", registry.register("bank", registry.save(model)))
        into = Path(scratch) / "into"
        into.mkdir()
        asyncio.run(_measure(registry, into))


if __name__ == "__main__":
    main()

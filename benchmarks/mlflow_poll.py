"""What following an alias of MLflow's registry costs: `python -m benchmarks.mlflow_poll`, on a registry on SQLite.

Memory is read from /proc, so this is for Linux.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from attributary_agents.config.mlflow import MlflowConfig, Registered
from attributary_agents.models.from_mlflow.registry import Registry
from attributary_agents.models.subprocess.memory import memory_in_use

N = 100


def make(folder: Path) -> None:
    """Make a registry with one model, in a process of its own: it needs more of MLflow than a worker does."""
    from sklearn.linear_model import LogisticRegression
    from support.models.mlflow_registry import MlflowRegistry

    registry = MlflowRegistry(folder)
    model = LogisticRegression().fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    registry.point("bank", "champion", registry.register("bank", registry.save(model)))


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Return the milliseconds and the milliseconds of processor time that a call takes."""
    began, cpu = time.perf_counter(), time.process_time()
    call()
    return 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)


def main() -> None:
    """Make a registry with one model, and measure."""
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        code = f"from pathlib import Path; from {__spec__.name} import make; make(Path({str(folder)!r}))"
        subprocess.run([sys.executable, "-c", code], check=True)
        registry = Registry(MlflowConfig(tracking_uri=f"sqlite:///{folder / 'registry.db'}"))
        alias, before = Registered("bank", alias="champion"), memory_in_use()
        took, cpu = measured(lambda: registry.version_of(alias))
        held = (memory_in_use() - before) / 1e6
        print(f"the first look: {took / 1000:.1f} s, {cpu / 1000:.1f} s of processor time, {held:.0f} MB")
        took, cpu = measured(lambda: [registry.version_of(alias) for _ in range(N)])
        print(f"each further look: {took / N:.1f} ms, {cpu / N:.1f} ms of processor time")
        print(f"at poll: 60s that is {cpu / N / 60_000:.5%} of a processor")
        into = folder / "into"
        into.mkdir()
        took, cpu = measured(lambda: registry.fetch(Registered("bank", version="1"), into))
        print(f"fetching a small version with its digest: {took:.0f} ms, {cpu:.0f} ms of processor time")


if __name__ == "__main__":
    main()

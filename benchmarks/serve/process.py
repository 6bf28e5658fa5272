"""Runs `attributary serve` on a store that is there, with brokers away, and reads what the process has used."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from attributary_agents.demo.local_broker import free_port
from attributary_agents.demo.processes import start_child, stop_child

_NO_BROKER = "127.0.0.1:1"
_STARTS_WITHIN_S = 180.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Served:
    """A server that answers.

    Parameters
    ----------
    pid
        Its process.
    address
        Where it answers, without a slash at the end.
    start_s
        Seconds from the start of the process until it did.
    """

    def __init__(self, pid: int, address: str, start_s: float) -> None:
        self.address, self.start_s = address, start_s
        self._process = Path("/proc") / str(pid)

    def memory_mb(self) -> tuple[float, float]:
        """Return what is resident, and what of it is the process's own, in MB."""
        told = (self._process / "smaps_rollup").read_text()
        found = {name: int(kb) * 1024 / 1e6 for name, kb in re.findall(r"^(\w+): +(\d+) kB", told, re.MULTILINE)}
        return found["Rss"], found["Private_Clean"] + found["Private_Dirty"]

    def cpu_s(self) -> float:
        """Return the seconds of the processor that it has used, all threads together."""
        fields = (self._process / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def has_loaded(self, *libraries: str) -> list[str]:
        """Return which of the libraries have compiled parts that the process has mapped."""
        mapped = (self._process / "maps").read_text()
        return [name for name in libraries if f"/site-packages/{name}/" in mapped]


@contextmanager
def served(store: Path, models: list[str]) -> Iterator[Served]:
    """Start a server on a store, wait until it answers, and end it."""
    folder, port = store.parent, free_port()
    model = {"model": {"class": "river.linear_model.LogisticRegression"}, "explainers": {"pfi": {}}}
    config = folder / f"{store.stem}.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "kafka": {"brokers": [_NO_BROKER]},
                "models": dict.fromkeys(models, model),
                "serve": {"max_bytes": "1TB", "max_age": "3000d"},
            }
        )
    )
    log = folder / f"{store.stem}.log"
    argv: list[str | Path] = [
        sys.executable,
        "-m",
        "attributary_agents.cli",
        "serve",
        "--config",
        config,
        "--port",
        str(port),
    ]
    began = time.monotonic()
    child = start_child([*argv, "--store", store], log=log)
    try:
        address = f"http://127.0.0.1:{port}"
        while not _answers(address):
            if child.poll() is not None or time.monotonic() - began > _STARTS_WITHIN_S:
                raise SystemExit(f"the server does not answer:\n{log.read_text()}")
            time.sleep(0.05)
        yield Served(child.pid, address, time.monotonic() - began)
    finally:
        stop_child(child, 30.0)


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/livez").status_code == 200
    except httpx.HTTPError:
        return False

"""The scenarios by name, and how one is run."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path

from benchmarks.chaos.lab.broker import ChaosBroker
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.scenarios import broker_stop, day, garbage, kills, pause, proxied, rolling, sizes

SCENARIOS: dict[str, Callable[[Lab], None]] = {
    "kills": kills.run,
    "rolling": rolling.run,
    "broker-stop": broker_stop.run,
    "proxy": proxied.run,
    "pause": pause.run,
    "day": day.run,
    "sizes": sizes.run,
    "garbage": garbage.run,
}


def run(name: str, broker: ChaosBroker, folder: Path, *, seed: int, short: bool, show: Callable[[str], None]) -> Lab:
    """Run one scenario; an error in it is a failed check.

    Parameters
    ----------
    folder
        For configurations and logs; it is made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # of our own clients, while the broker is away
    lab = Lab(name, broker, folder, seed, short, show)
    try:
        broker.start()  # a scenario may have left it stopped
        SCENARIOS[name](lab)
    except Exception as error:  # noqa: BLE001 - the other scenarios go on
        lab.note(traceback.format_exc())
        lab.check("the scenario came to its end", False, repr(error))
    return lab


def describe(name: str) -> str:
    """What a scenario does, in a line."""
    return (SCENARIOS[name].__doc__ or "").splitlines()[0]

"""The scenarios by name, and how one is run."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable

from attributary_agents.demo.brokers import BrokerMissingError
from benchmarks.chaos.lab.lab import Lab
from benchmarks.chaos.scenarios import (
    attached,
    broker_stop,
    cluster,
    day,
    garbage,
    kills,
    models,
    pause,
    proxied,
    rebalances,
    rolling,
    sizes,
    soak,
    transactions,
)

SCENARIOS: dict[str, Callable[[Lab], None]] = {
    "kills": kills.run,
    "rolling": rolling.run,
    "broker-stop": broker_stop.run,
    "proxy": proxied.run,
    "pause": pause.run,
    "day": day.run,
    "sizes": sizes.run,
    "garbage": garbage.run,
    "cluster": cluster.run,
    "transactions": transactions.run,
    "rebalances": rebalances.run,
    "models": models.run,
    "attached": attached.run,
    "attached-once": attached.run_exactly_once,
    "soak": soak.run,
}

ON_REQUEST = ("soak",)
"""Only run in full where they are named."""


_OF_NODES = ("cluster", "transactions")
"""Scenarios that have a cluster, and no use for the broker of the others."""


def run(lab: Lab) -> None:
    """Run the lab's scenario; an error in it is a failed check. The lab's folder is made.

    Raises
    ------
    BrokerMissingError
        Apache Kafka is not installed.
    """
    lab.folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # of our own clients, while the broker is away
    try:
        if lab.scenario in _OF_NODES:  # each would only take memory while it is the other's turn
            lab.broker.stop()
        else:
            lab.nodes.close()
            lab.broker.start()  # a scenario may have left it stopped
        SCENARIOS[lab.scenario](lab)
    except BrokerMissingError:
        raise
    except Exception as error:  # noqa: BLE001 - the other scenarios go on
        lab.note(traceback.format_exc())
        lab.check("the scenario came to its end", False, repr(error))


def describe(name: str) -> str:
    """What a scenario does, in a line."""
    return (SCENARIOS[name].__doc__ or "").splitlines()[0]

"""The place of one attack, what an attack is, what came of it, and the list of all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.worker_process import WorkerProcess

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.demo.brokers import Broker
from attributary_agents.kafka.topics import create_topics

_numbers = itertools.count(1)

LOGISTIC: dict[str, Any] = {
    "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LogisticRegression"}],
    "explainers": {"pfi": {"n_samples": 2}},
    "change": None,
}
"""A model that costs little, for attacks that are not about the model."""


class Lab:
    """One attack's broker and folder.

    Parameters
    ----------
    broker
        A running Apache Kafka, which all attacks share; each has a group and topics of its own.
    folder
        Empty; for configurations, logs and artefacts.
    short
        Whether what time decides is measured once, as in the tests, which do not judge it, and so with less ahead of
        it; and whether workers are forked from a process that has imported everything.
    """

    def __init__(self, broker: Broker, folder: Path, *, short: bool = False) -> None:
        self.broker = broker
        self.folder = folder
        self.short = short
        self.rounds = 1 if short else 15

    def configure(self, models: dict[str, Any], **sections: Any) -> tuple[dict[str, Any], Config]:
        """Return a configuration as it is written and as it is read, with topics that have been created.

        Parameters
        ----------
        models
            Model id to settings.
        sections
            Further sections; `kafka` is added to what the lab says.
        """
        name = f"hostile{next(_numbers)}"
        kafka = {
            "brokers": [self.broker.bootstrap],
            "group": name,
            "topic_prefix": name,
            "partitions": 1,
            "session_timeout_s": 6.0,
        }
        raw = {
            "models": models,
            "checkpoint": {"interval_s": 1, "max_observations": 500},
            **sections,
            "kafka": kafka | sections.get("kafka", {}),
        }
        config = parse_config(raw)
        create_topics(config)
        return raw, config

    def worker(self, raw: dict[str, Any], *, forked: bool = True) -> WorkerProcess:
        """Return a worker of this configuration, not yet started: `with lab.worker(raw) as worker`.

        Parameters
        ----------
        forked
            False: it must be started as a user starts it, whatever the lab does.
        """
        return WorkerProcess(raw, self.folder, forked=forked and self.short)


Run = Callable[[Lab], "Found"]


@dataclass(frozen=True)
class Found:
    """What came of an attack.

    Attributes
    ----------
    figure
        What was seen, in words and numbers: "1 dead letter, 0 of 150 lost".
    held
        Whether that is as good as it has to be.
    fast
        Whether what was measured by time is so, too: the table needs it, and no test does.
    """

    figure: str
    held: bool
    fast: bool = True


@dataclass(frozen=True)
class Attack:
    """Describes an attack.

    Attributes
    ----------
    name
        One word, for the command line.
    what
        What the attacker does, as the table says it.
    run
        Makes the attack in a lab of its own.
    """

    name: str
    what: str
    run: Run


ATTACKS: dict[str, Attack] = {}
"""Name to attack, in the order in which their modules are imported."""


def attack(name: str, what: str) -> Callable[[Run], Run]:
    """Register a function as an attack."""

    def register(run: Run) -> Run:
        ATTACKS[name] = Attack(name, what, run)
        return run

    return register

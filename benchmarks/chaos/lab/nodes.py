"""Three nodes of Apache Kafka, which the scenarios that kill nodes share while they come one after the other."""

from __future__ import annotations

from pathlib import Path

from support.cluster import KafkaCluster

NODES = 3

SETTINGS = {"group.min.session.timeout.ms": "1000", "log.cleaner.backoff.ms": "1000"}
"""As the broker of the other scenarios has them."""


class Nodes:
    """The cluster, which is started when it is first asked for.

    Parameters
    ----------
    folder
        Of the nodes' data and logs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cluster: KafkaCluster | None = None

    def start(self) -> KafkaCluster:
        """Return the cluster once all its nodes run: one may have been left killed."""
        if self._cluster is None:
            self._cluster = KafkaCluster(self._folder, NODES, SETTINGS)
        cluster = self._cluster
        if gone := [number for number in cluster.nodes if number not in cluster.running]:
            cluster.start(*gone)
        return cluster

    def close(self) -> None:
        """End all nodes, for good."""
        if self._cluster is not None:
            self._cluster.close()

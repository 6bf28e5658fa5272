"""The brokers of the scenarios: one that is quick to forget members, with a second listener, and three nodes."""

from __future__ import annotations

from pathlib import Path

from support.cluster import KafkaCluster

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.local_broker import HOST, free_port


class ChaosBroker(KafkaBroker):
    """The broker of all scenarios; `bootstrap` is its own port, `proxied_port` what a proxy must forward to.

    Clients that come by the second listener are told to go on by `advertised_port`, where the proxy listens.
    """

    _start_timeout_s = 240.0  # on a machine that is busy with other things

    def __init__(self, data_dir: Path | None = None) -> None:
        super().__init__(data_dir)
        self.proxied_port = free_port()
        self.advertised_port = free_port()

    def _properties(self, data: Path) -> str:
        lines = dict(line.split("=", 1) for line in super()._properties(data).splitlines())
        lines["listeners"] += f",PROXIED://{HOST}:{self.proxied_port}"
        lines["advertised.listeners"] += f",PROXIED://{HOST}:{self.advertised_port}"
        names = ("PLAINTEXT", "PROXIED", "CONTROLLER")
        lines["listener.security.protocol.map"] = ",".join(f"{name}:PLAINTEXT" for name in names)
        # A killed worker's partitions are free after its session, at least 6 s by default.
        lines["group.min.session.timeout.ms"] = "1000"
        lines["log.cleaner.backoff.ms"] = "1000"
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def bytes_on_disk(self, topic: str) -> int:
        """Bytes of all the topic's segments."""
        assert self._dir is not None
        folders = (self._dir / "data").glob(f"{topic}-[0-9]*")
        total = 0
        for path in (path for folder in folders for path in folder.glob("*.log")):
            try:
                total += path.stat().st_size
            except OSError:  # compacted away since
                continue
        return total


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

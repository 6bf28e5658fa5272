"""Several nodes of Apache Kafka that are one cluster, each of which can be stopped, killed and started again."""

from __future__ import annotations

import atexit
import io
import re
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from aiokafka.protocol.coordination import FindCoordinatorResponse_v1
from aiokafka.protocol.metadata import MetadataResponse_v1

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.local_broker import HOST, ask, free_port

from .waiting import wait_for

KNOWN_WITHIN_S = 120.0
"""Longest wait for what a cluster settles by itself: a quorum, a leader, a coordinator."""


class ClusterNode(KafkaBroker):
    """One node, broker and controller at once."""

    _heap = "256m"
    _start_timeout_s = 240.0  # of several JVMs that start at once on a busy machine

    def __init__(self, number: int, cluster: KafkaCluster) -> None:
        super().__init__(cluster.folder / f"node-{number}")
        self.number = number
        self.port = self._port
        self.controller_port = free_port()
        self._cluster = cluster
        self._cluster_id = cluster.id

    def prepare(self) -> None:
        """Format the data folder, so that `launch` only starts a process."""
        assert self._dir is not None
        self._require()
        self._dir.mkdir(parents=True, exist_ok=True)
        formatted = [node for node in self._cluster.nodes.values() if node.is_formatted]
        if formatted and not self.is_formatted:
            self._format_like(formatted[0])
        self._prepare(self._dir)

    @property
    def is_formatted(self) -> bool:
        """Whether the data folder is as Kafka wants it."""
        return (self.data / "meta.properties").is_file()

    @property
    def data(self) -> Path:
        """The data folder."""
        return self._cluster.folder / f"node-{self.number}" / "data"

    def _format_like(self, other: ClusterNode) -> None:
        # A JVM less to start: data folders of one cluster differ in two lines.
        self.data.mkdir()
        for path in other.data.iterdir():
            if path.is_file() and path.name != "meta.properties":
                shutil.copy(path, self.data)
        said = (other.data / "meta.properties").read_text()
        said = re.sub(r"(?m)^node\.id=.*$", f"node.id={self.number}", said)
        said = re.sub(r"(?m)^directory\.id=.*$", f"directory.id={self.new_cluster_id()}", said)
        (self.data / "meta.properties").write_text(said)

    def _next_controller_port(self) -> int:
        return self.controller_port  # the other nodes know it

    def _properties(self, data: Path) -> str:
        lines = dict(line.split("=", 1) for line in super()._properties(data).splitlines())
        nodes = self._cluster.nodes
        lines["node.id"] = str(self.number)
        lines["controller.quorum.voters"] = ",".join(
            f"{number}@{HOST}:{node.controller_port}" for number, node in nodes.items()
        )
        copies = min(3, len(nodes))
        lines["offsets.topic.replication.factor"] = str(copies)
        lines["transaction.state.log.replication.factor"] = str(copies)
        lines["transaction.state.log.min.isr"] = str(max(1, copies - 1))
        lines |= self._cluster.settings
        return "".join(f"{name}={value}\n" for name, value in lines.items())


class KafkaCluster:
    """Runs a cluster inside a block, after which no process is left; its data stays in `folder`.

    Nodes are numbered from 1 as Kafka numbers them (`node.id`).

    Parameters
    ----------
    folder
        Where the nodes keep configuration, log and data; new or empty.
    n
        How many nodes; more than half of them must run for topics to be created and leaders to be elected.
    settings
        Lines of server.properties that differ from those of a local broker, for all nodes.
    """

    def __init__(self, folder: Path, n: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder.absolute()
        self.settings = dict(settings or {})
        self.id = KafkaBroker.new_cluster_id()
        self.nodes: dict[int, ClusterNode] = {}
        for number in range(1, n + 1):
            self.nodes[number] = ClusterNode(number, self)

    @property
    def brokers(self) -> list[str]:
        """Addresses of all nodes, those that are down included, each host:port."""
        return [node.bootstrap for node in self.nodes.values()]

    @property
    def bootstrap(self) -> str:
        """Addresses of all nodes, separated by commas."""
        return ",".join(self.brokers)

    @property
    def running(self) -> list[int]:
        """Numbers of the nodes whose processes run."""
        return [number for number, node in self.nodes.items() if node.pid is not None]

    def __enter__(self) -> Self:
        atexit.register(self.close)
        try:
            self.start(*self.nodes)
        except BaseException:  # Ctrl-C too
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all nodes with SIGKILL: without a quorum an orderly end would wait for one."""
        atexit.unregister(self.close)
        for node in self.nodes.values():
            node.kill()

    def start(self, *numbers: int) -> None:
        """Start nodes; return once every node that runs knows of every other and serves requests.

        Without a quorum there would be no end of that: start as many at once as are needed for one.
        """
        for number in numbers:
            self.nodes[number].prepare()  # all before the first one starts: its folder is what the others copy
        for number in numbers:
            if self.nodes[number].pid is None:
                self.nodes[number].launch()
        for number in numbers:
            self.nodes[number].wait_until_ready()
        wait_for("every node knows of all that run", self._all_known, KNOWN_WITHIN_S)

    def stop(self, number: int) -> None:
        """End a node in an orderly way: what it leads is handed over first."""
        self.nodes[number].stop()

    def kill(self, number: int) -> None:
        """End a node with SIGKILL; the others notice after broker.session.timeout.ms, 3 s."""
        self.nodes[number].kill()

    def leader(self, topic: str, partition: int) -> int:
        """Return the node that leads a partition, once all nodes that run agree about one that runs.

        Raises
        ------
        AssertionError
            They do not within KNOWN_WITHIN_S.
        """

        def agreed() -> int | None:
            named = {self._leader_by(number, topic, partition) for number in self.running}
            return named.pop() if len(named) == 1 else None

        found = wait_for(f"a leader of {topic}[{partition}]", lambda: self._if_running(agreed()), KNOWN_WITHIN_S)
        assert found is not None
        return found

    def coordinator(self, group: str, *, of_transactions: bool = False) -> int:
        """Return the node that coordinates a consumer group, once all nodes that run agree about one that runs.

        Parameters
        ----------
        of_transactions
            Whether the name is a transactional id.

        Raises
        ------
        AssertionError
            They do not within KNOWN_WITHIN_S.
        """
        name = struct.pack(">h", len(group.encode())) + group.encode() + struct.pack(">b", of_transactions)

        def agreed() -> int | None:
            named = set()
            for number in self.running:
                answer = self._ask(number, 10, 1, name, FindCoordinatorResponse_v1)
                named.add(None if answer is None or answer.error_code else answer.coordinator_id)
            return named.pop() if len(named) == 1 else None

        found = wait_for(f"a coordinator of {group}", lambda: self._if_running(agreed()), KNOWN_WITHIN_S)
        assert found is not None
        return found

    def _if_running(self, number: int | None) -> int | None:
        return number if number in self.running else None

    def _all_known(self) -> bool:
        running = set(self.running)
        for number in running:
            answer = self._ask(number, 3, 1, struct.pack(">i", 0), MetadataResponse_v1)
            if answer is None or not running <= {broker[0] for broker in answer.brokers}:
                return False
        return True

    def _leader_by(self, number: int, topic: str, partition: int) -> int | None:
        name = struct.pack(">ih", 1, len(topic.encode())) + topic.encode()
        answer = self._ask(number, 3, 1, name, MetadataResponse_v1)
        for code, _name, _internal, partitions in answer.topics if answer else []:
            for _code, found, leader, _replicas, _in_sync in [] if code else partitions:
                if found == partition and leader >= 0:
                    return int(leader)
        return None

    def _ask(self, number: int, api: int, version: int, body: bytes, response: Any) -> Any:
        try:
            answer = ask(self.nodes[number].port, api, version, body)
        except OSError:  # it starts or ends
            return None
        return response.decode(io.BytesIO(answer))

"""A cluster of brokers that answer from memory, with the answers of aiokafka's protocol, error codes included."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import NodeNotReadyError
from aiokafka.protocol.admin import (
    CreateTopicsRequest,
    CreateTopicsResponse_v3,
    DescribeConfigsRequest,
    DescribeConfigsResponse_v2,
)
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v5

UNKNOWN, NO_LEADER, TIMED_OUT, FORBIDDEN, EXISTS, TOO_FEW, NO_CONTROLLER = 3, 5, 7, 29, 36, 38, 41


@dataclass
class FakeTopic:
    """One topic as the controller has it."""

    partitions: int
    replicas: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    in_sync: int | None = None


class FakeCluster:
    """Brokers from 1 to n. A topic that `create` makes is known to a broker when it has been asked often enough."""

    def __init__(self, n: int = 1, topics: dict[str, FakeTopic] | None = None) -> None:
        self.numbers = list(range(1, n + 1))
        self.topics = dict(topics or {})
        self.down: set[int] = set()
        self.has_controller = True
        self.late: dict[int, int] = {}
        """How often a broker is asked in vain."""
        self.says = "unknown"
        """How a broker that is late shows it: unknown, no leader, no partitions, leaderless, no settings."""
        self.tells: dict[tuple[int, str], FakeTopic] = {}
        """What a broker tells of a topic in place of what the controller has."""
        self.hidden: set[str] = set()
        self.refusals: list[int] = []
        """Error codes of the next creations, of which nothing comes."""
        self.created: list[str] = []
        self.asked: Counter[int] = Counter()

    def admin(self, **_options: Any) -> AIOKafkaAdminClient:
        """Return an admin client whose requests end here."""
        client = AIOKafkaAdminClient.__new__(AIOKafkaAdminClient)
        client._closed, client._started, client._request_timeout_ms = False, False, 1000
        client._client = _Client(self)
        return client

    def answer(self, number: int, request: Any) -> Any:
        """Return a broker's answer."""
        if number in self.down:
            raise NodeNotReadyError(str(number))
        if isinstance(request, MetadataRequest):
            if request._topics != []:
                self.asked[number] += 1
            names = [*self.topics] if request._topics is None else request._topics
            told = [answer for name in names if (answer := self._metadata(number, name, request._topics is None))]
            brokers = [(n, "127.0.0.1", 9000 + n, None) for n in self.numbers]
            return MetadataResponse_v5(0, brokers, "cluster", 1, told)
        if isinstance(request, DescribeConfigsRequest):
            return DescribeConfigsResponse_v2(0, [self._settings(number, name) for _, name, _ in request._resources])
        assert isinstance(request, CreateTopicsRequest)
        if request.validate_only:
            code = 0 if self.has_controller else NO_CONTROLLER
            return CreateTopicsResponse_v3(0, [(request.create_topic_requests[0][0], code, None)])
        return CreateTopicsResponse_v3(0, [self._create(*topic) for topic in request.create_topic_requests])

    def _is_late(self, number: int) -> bool:
        return self.asked[number] <= self.late.get(number, 0)

    def _metadata(self, number: int, name: str, is_listed: bool) -> Any:
        topic = self.tells.get((number, name)) or self.topics.get(name)
        how = self.says if self._is_late(number) else ""
        if name in self.hidden:
            return None if is_listed else (FORBIDDEN, name, False, [])
        if topic is None or how == "unknown":
            return None if is_listed else (UNKNOWN, name, False, [])
        if how == "no leader":
            return (NO_LEADER, name, False, [])
        if how == "no partitions":
            return (0, name, False, [])
        code, leader = (NO_LEADER, -1) if how == "leaderless" else (0, 1)
        replicas = self.numbers[: topic.replicas]
        in_sync = replicas[: topic.replicas if topic.in_sync is None else topic.in_sync]
        return (0, name, False, [(code, n, leader, replicas, in_sync, []) for n in range(topic.partitions)])

    def _settings(self, number: int, name: str) -> Any:
        topic = self.tells.get((number, name)) or self.topics.get(name)
        if name in self.hidden:
            return (FORBIDDEN, "", 2, name, [])
        if topic is None or (self._is_late(number) and self.says in ("unknown", "no settings")):
            return (UNKNOWN, "", 2, name, [])
        return (0, "", 2, name, [(key, value, False, 1, False, []) for key, value in topic.settings.items()])

    def _create(self, name: str, partitions: int, replicas: int, _: Any, settings: Any) -> Any:
        if self.refusals:
            if (code := self.refusals.pop(0)) == TIMED_OUT:  # and it is made all the same
                self.topics[name] = FakeTopic(partitions, replicas, dict(settings))
            return (name, code, f"refused with {code}")
        if name in self.topics:
            return (name, EXISTS, "exists")
        if replicas > len(self.numbers):
            return (name, TOO_FEW, f"only {len(self.numbers)} broker(s) are registered")
        self.topics[name] = FakeTopic(partitions, replicas, dict(settings))
        self.created.append(name)
        return (name, 0, None)


class _Client:
    """What an admin client uses of `AIOKafkaClient`; asks the brokers in turn where no one is named."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._fake, self._turn = cluster, itertools.cycle(cluster.numbers)
        self._request_timeout_ms, self._retry_backoff = 1000, 0.01
        self.cluster = ClusterMetadata(bootstrap_servers=["127.0.0.1:9001"])

    async def bootstrap(self) -> None:
        up = next(number for number in self._fake.numbers if number not in self._fake.down)
        self.cluster.update_metadata(self._fake.answer(up, MetadataRequest([])))

    async def close(self) -> None:
        """Nothing is open."""

    async def force_metadata_update(self) -> None:
        await self.bootstrap()

    def get_random_node(self) -> int:
        return next(self._turn)

    async def _get_conn(self, number: int) -> None:
        """Nothing is connected to."""

    async def ready(self, number: int) -> bool:
        return number not in self._fake.down

    async def send(self, number: int, request: Any) -> Any:
        return self._fake.answer(number, request)

"""What a reset sends once more: each shard's last version, where it came from, and of no other model."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from attributary_agents.kafka import deployments
from tests.agents.stand_ins import config_of


def test_the_last_record_of_each_partition_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, bytes, int]] = []

    async def read(_config: Any) -> dict[str, list[Any]]:
        def record(value: bytes | None, partition: int) -> Any:
            return SimpleNamespace(value=value, partition=partition)

        return {"m": [record(b"two", 2), record(b"one", 0), record(None, 1)], "other": [record(b"three", 0)]}

    async def send(_config: Any, model_id: str, value: bytes, partition: int) -> list[tuple[int, int]]:
        sent.append((model_id, value, partition))
        return [(partition, 0)]

    monkeypatch.setattr(deployments, "read_deployments", read)
    monkeypatch.setattr(deployments, "send_deployment", send)
    asyncio.run(deployments.repeat_deployment(config_of(), "m"))
    assert sent == [("m", b"one", 0), ("m", b"two", 2)], "the latest one last: who reads the topic goes by that"
    asyncio.run(deployments.repeat_deployment(config_of(), "none"))
    assert len(sent) == 2

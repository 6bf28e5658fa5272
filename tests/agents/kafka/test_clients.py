"""What a client's fault means where something else than a broker answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.conn import collect_hosts
from aiokafka.errors import KafkaConnectionError

from attributary_agents.config.settings import KafkaConfig
from attributary_agents.errors import BrokersAwayError, PreflightError
from attributary_agents.kafka import clients
from attributary_agents.kafka.clients import client_fault


async def _fault(answer: bytes | None, protocol: str) -> PreflightError:
    """Return what is said of a port that accepts, answers with these bytes or with none, and ends the connection."""

    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if answer is not None:
            await reader.read(1)
            writer.write(answer)
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        raw: dict[str, Any] = {"brokers": [f"127.0.0.1:{port}"], "security": {"protocol": protocol}}
        return await client_fault(KafkaConfig.model_validate(raw), KafkaConnectionError())


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_what_accepts_and_ends_the_connection_may_be_a_proxy_of_a_broker_that_is_not_up(protocol: str) -> None:
    fault = asyncio.run(_fault(None, protocol))
    assert isinstance(fault, BrokersAwayError), "a start waits for it"
    assert f"this port may not speak {protocol}" in str(fault)
    assert f"this port may not speak {protocol}" in fault.causes
    assert fault.causes.startswith("127.0.0.1:")


def test_a_port_that_answers_in_another_protocol_is_not_waited_for() -> None:
    fault = asyncio.run(_fault(b"\0\0\0\4\0\0\0\1", "SSL"))
    assert not isinstance(fault, BrokersAwayError)
    assert "this port may not speak SSL" in str(fault)


def test_of_several_brokers_the_one_that_answers_is_named_so_that_clients_can_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def probe(_kafka: KafkaConfig, host: str, port: int) -> OSError | None:
        return None if (host, port) == answers else OSError("refused")

    monkeypatch.setattr(clients, "_probe", probe)
    kafka = KafkaConfig.model_validate({"brokers": ["[::1]:9092", "[::2]:9093", "one:9094"]})
    for answers in (("::2", 9093), ("one", 9094)):
        (found,) = asyncio.run(clients.first_to_answer(kafka))
        assert collect_hosts([found])[0][:2] == answers
    answers = ("nobody", 0)
    assert asyncio.run(clients.first_to_answer(kafka)) == kafka.brokers

"""The models topic as the command line sees it: send a deployment, read what is deployed."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from ..config.settings import Config
from ..errors import PreflightError
from .clients import client_fault, client_options
from .reading import topic_reader


async def send_deployment(config: Config, model_id: str, value: bytes, partition: int | None = None) -> tuple[int, int]:
    """Send one record; return its partition and offset once the broker has it.

    Raises
    ------
    PreflightError
        The broker cannot be reached or refuses.
    """
    topic = config.kafka.topics.models
    producer = AIOKafkaProducer(**client_options(config.kafka), enable_idempotence=True)
    try:
        await producer.start()
        sent = await producer.send_and_wait(topic, value, model_id.encode(), partition)
        return sent.partition, sent.offset
    except KafkaError as error:
        raise await client_fault(config.kafka, error, topic) from None
    except AssertionError as error:  # it asserts that the partition exists
        raise PreflightError(f"{topic}: {error}. `attributary check` says what is missing") from None
    finally:
        await producer.stop()


async def read_deployments(config: Config) -> dict[str, Any]:
    """Model id to the last record of the models topic with that key; ids that are no UTF-8 are left out.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    found: dict[str, Any] = {}
    async with topic_reader(config, config.kafka.topics.models) as reader:
        async for batch in reader.present():
            for record in batch:
                _note(found, record)
    return found


def _note(found: dict[str, Any], record: Any) -> None:
    try:
        model_id = (record.key or b"").decode()
    except UnicodeDecodeError:
        return
    other = found.get(model_id)
    # On two partitions only by somebody's mistake: the later one in time.
    if other is None or (record.timestamp, record.offset) >= (other.timestamp, other.offset):
        found[model_id] = record

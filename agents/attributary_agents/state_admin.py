"""The stored states as the command line sees them."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from .config import Config
from .errors import PreflightError
from .kafka_clients import client_options
from .state_records import StateRecords
from .stored_names import wanted_names


async def read_records(config: Config) -> StateRecords:
    """Everything in the state's changelog that is of the configured models.

    Raises
    ------
    PreflightError
        The broker cannot be reached.
    """
    topic = config.kafka.changelog
    records = StateRecords(wanted_names(config.models))
    consumer = AIOKafkaConsumer(**client_options(config.kafka), enable_auto_commit=False, auto_offset_reset="earliest")
    try:
        await consumer.start()
        places = [TopicPartition(topic, n) for n in range(config.kafka.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        # Positions and not counts: a compacted topic has offsets without a record.
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                for record in batch:
                    records.apply(record.partition, record.key, record.value)
    except KafkaError as error:
        raise _refused(config, error) from None
    finally:
        await consumer.stop()
    return records


def _refused(config: Config, error: Exception) -> PreflightError:
    return PreflightError(
        f"{config.kafka.changelog} at {', '.join(config.kafka.brokers)}: {type(error).__name__}: {error}. "
        "`attributary check` says what is missing"
    )

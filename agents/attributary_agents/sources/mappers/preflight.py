"""Checks at the start that the topics of sources and labels are there."""

from __future__ import annotations

from aiokafka.admin import AIOKafkaAdminClient

from attributary_explainers.wording import did_you_mean

from ...config.settings import Config
from ...errors import ConfigError
from ...kafka.admin import with_admin
from ...kafka.origin_topics import ask_origin_topics


def check_origin_topics(config: Config) -> None:
    """Raise ConfigError, naming every fault, unless the topics are there.

    Raises
    ------
    PreflightError
        The brokers cannot be reached or refuse.
    """
    wanted = [
        (f"{kind}.{name}", topic)
        for kind, sections in (("sources", config.sources), ("labels", config.labels))
        for name, section in sections.items()
        for topic in section.topic
    ]
    if not wanted:
        return

    async def work(admin: AIOKafkaAdminClient) -> list[str]:
        found = await ask_origin_topics(admin._client, sorted({topic for _, topic in wanted}))
        missing = [(at, topic) for at, topic in wanted if topic not in found]
        known = [name for name in await admin.list_topics() if not name.startswith("__")] if missing else []
        brokers = ", ".join(config.kafka.brokers)
        return [f"{at}.topic: no topic {topic!r} on {brokers}{did_you_mean(topic, known)}" for at, topic in missing]

    if faults := with_admin(config.kafka, work):
        raise ConfigError("; ".join(faults))

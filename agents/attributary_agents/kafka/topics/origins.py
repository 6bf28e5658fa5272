"""Finds topics that are not ours, and says which are not there; asking creates none."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient

from attributary_explainers.wording import closest, show_names

from ...config.settings import Config, KafkaConfig
from ...errors import PreflightError
from ..admin import with_admin


def origin_topics(config: Config) -> dict[str, str]:
    """Return the topics that sources and labels name, each with the key that names it."""
    found: dict[str, str] = {}
    for name, source in config.sources.items():
        found = {**dict.fromkeys(source.topic, f"sources.{name}.topic"), **found}
    for name, section in config.labels.items():
        found = {**dict.fromkeys(section.topic, f"labels.{name}.topic"), **found}
    return found


async def ask_origin_topics(
    admin: AIOKafkaAdminClient, kafka: KafkaConfig, wanted: Mapping[str, str]
) -> dict[str, int]:
    """Return the number of partitions of topics that are not ours.

    Parameters
    ----------
    wanted
        Topic to the key of the configuration, or the argument, that names it.

    Raises
    ------
    PreflightError
        Some are not there, or this user may not see them: each with the one that may be meant.
    """
    there = set(await admin.list_topics())  # of all: a question after one of them could create it
    if missing := [topic for topic in wanted if topic not in there]:
        shown = sorted(name for name in there if not name.startswith("__"))
        raise PreflightError("; ".join(_missing(kafka, wanted[topic], topic, shown) for topic in missing))
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics(list(wanted))}


def find_origin_topics(kafka: KafkaConfig, wanted: Mapping[str, str]) -> dict[str, int]:
    """Ask the brokers for `ask_origin_topics`; PreflightError also where they cannot be asked."""

    async def work(admin: AIOKafkaAdminClient) -> dict[str, int]:
        return await ask_origin_topics(admin, kafka, wanted)

    return with_admin(kafka, work) if wanted else {}


def _missing(kafka: KafkaConfig, key: str, topic: str, there: list[str]) -> str:
    near = closest(topic, there)
    others = f"did you mean {near!r}?" if near else f"there are {show_names(there)}" if there else "there is none"
    hidden = "" if kafka.security.protocol == "PLAINTEXT" or near else ", as far as this user may see them"
    return f"{key}: no topic {topic!r} on {', '.join(kafka.brokers)}; {others}{hidden}"

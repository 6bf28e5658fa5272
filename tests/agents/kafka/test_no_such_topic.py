"""What is said of a topic that is not there: the one that may be meant, or those that there are."""

from __future__ import annotations

import pytest

from attributary_agents.config.settings import KafkaConfig
from attributary_agents.kafka.topics.origins import no_such_topic

PLAIN = {"brokers": ["kafka:9092"]}
SECURE = {**PLAIN, "security": {"protocol": "SSL"}}


@pytest.mark.parametrize(
    ("kafka", "topic", "there", "said"),
    [
        (PLAIN, "rentls", ["counts", "rentals"], "did you mean 'rentals'?"),
        (SECURE, "rentls", ["counts", "rentals"], "did you mean 'rentals'?"),
        (PLAIN, "weather", ["counts", "__consumer_offsets", "a"], "there are a, counts"),
        (PLAIN, "weather", ["attributary.status.v1", "attributary-state-changelog", "counts"], "there are counts"),
        (PLAIN, "weather", ["attributary.status.v1"], "there is none"),
        (SECURE, "weather", ["counts"], "there are counts, as far as this user may see them"),
        (PLAIN, "consumer_offsets", ["__consumer_offsets"], "there is none"),
    ],
)
def test_what_is_said(kafka: dict[str, object], topic: str, there: list[str], said: str) -> None:
    found = no_such_topic(KafkaConfig.model_validate(kafka), "sources.a.topic", topic, there)
    assert found == f"sources.a.topic: no topic {topic!r} on kafka:9092; {said}"

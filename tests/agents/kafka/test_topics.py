"""Creating topics: done when every broker that may be asked knows them."""

from __future__ import annotations

import asyncio

import pytest

from attributary_agents.errors import PreflightError
from attributary_agents.kafka import topics as topic_admin


class SlowBroker:
    """Lists the topics only when it has been asked a few times."""

    def __init__(self, after: int) -> None:
        self.asked = 0
        self.after = after

    async def list_topics(self) -> list[str]:
        self.asked += 1
        return ["a", "b"] if self.asked > self.after else ["a"]


def test_a_topic_that_is_listed_late_is_waited_for() -> None:
    broker = SlowBroker(after=3)
    asyncio.run(topic_admin._wait_until_known(broker, {"a", "b"}))
    assert broker.asked == 4


def test_a_topic_that_is_never_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_admin, "KNOWN_WITHIN_S", 0.0)
    with pytest.raises(PreflightError, match="does not list b"):
        asyncio.run(topic_admin._wait_until_known(SlowBroker(after=10**9), {"a", "b"}))

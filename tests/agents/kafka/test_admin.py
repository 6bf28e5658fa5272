"""What takes too long is told as that, where a broker answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from attributary_agents.errors import BrokersAwayError
from attributary_agents.kafka.admin import with_admin
from tests.agents.kafka.fake_cluster import FakeCluster
from tests.agents.stand_ins import config_of


def test_work_that_takes_too_long_is_no_lack_of_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answers(*_: object) -> None:
        """Let every broker answer."""

    monkeypatch.setattr("attributary_agents.kafka.admin.AIOKafkaAdminClient", FakeCluster(1).admin)
    monkeypatch.setattr("attributary_agents.kafka.clients._probe", answers)

    async def work(_admin: Any) -> None:
        await asyncio.Event().wait()

    with pytest.raises(BrokersAwayError, match=r"the brokers answer, but not all that was asked within 0 s") as raised:
        with_admin(config_of().kafka, work, within_s=0.1)
    assert "start it" not in str(raised.value)

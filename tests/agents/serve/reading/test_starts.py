"""Where each partition is read from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from attributary_agents.kafka.readers import Place
from attributary_agents.kafka.topics.origins import OriginTopic
from attributary_agents.serve.reading import MadeAnewError, Starts, check_ids, find_starts

BOUNDS = {("imp", 0): (10, 50), ("imp", 1): (0, 0), ("imp", 2): (5, 90), ("status", 0): (3, 8)}
AT_TIME = {("imp", 0): 30, ("imp", 1): None, ("imp", 2): None}


class Brokers:
    """Stands for the brokers."""

    async def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        return {place: BOUNDS[place] for place in places}

    async def offsets_at(self, places: Iterable[Place], time_ms: int) -> dict[Place, int | None]:
        assert time_ms == 77
        return {place: AT_TIME[place] for place in places}


def starts(positions: dict[Place, int]) -> Starts:
    topics = {"imp": OriginTopic("imp", "a", (0, 1, 2)), "status": OriginTopic("status", "b", (0,))}
    brokers: Any = Brokers()
    return asyncio.run(find_starts(brokers, topics, positions, "status", 77))


def test_at_first_from_max_age_on_and_a_compacted_topic_as_a_whole() -> None:
    found = starts({})
    assert found.offsets == {("imp", 0): 30, ("imp", 1): 0, ("imp", 2): 90, ("status", 0): 3}
    assert found.ends == {place: end for place, (_, end) in BOUNDS.items()}


def test_then_from_where_it_was_read_to_or_from_what_is_left() -> None:
    found = starts({("imp", 0): 45, ("imp", 2): 2, ("status", 0): 8})
    assert found.offsets == {("imp", 0): 45, ("imp", 1): 0, ("imp", 2): 5, ("status", 0): 8}


def test_a_partition_that_ends_before_is_another_one() -> None:
    with pytest.raises(MadeAnewError, match=r"imp\[0\] ends at 50, and was read to 51"):
        starts({("imp", 0): 51})


def test_a_topic_with_another_id_is_another_one() -> None:
    topics = {"imp": OriginTopic("imp", "a", (0,)), "old": OriginTopic("old", "", (0,))}
    check_ids(topics, {"imp": "a"})
    check_ids(topics, {"imp": "", "old": "z"})  # brokers that have no ids, or had none
    with pytest.raises(MadeAnewError, match="topic imp has been made anew"):
        check_ids(topics, {"imp": "b"})

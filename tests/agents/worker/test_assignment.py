"""Faust's assignor gives a worker the same partition numbers of the observations, the models topic and the state.

What `Worker.handle_control` rests on; on real workers: tests/integration/test_deployments.py.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata

from attributary_agents.app import create_app
from attributary_agents.config.reading import EXAMPLE, parse_config

ALL = ("attributary.observations.v1", "attributary.models.v1", "attributary-state-changelog")


class Group:
    """Members that come and go, each with an assignor that remembers what it was given, as a process does."""

    def __init__(self, partitions: int) -> None:
        self.cluster: Any = SimpleNamespace(partitions_for_topic=lambda _topic: set(range(partitions)))
        self.members: dict[str, Any] = {}
        self.n = 0

    def join(self) -> None:
        app = create_app(parse_config(yaml.safe_load(EXAMPLE))).app
        self.members[f"member-{self.n}"] = app.assignor
        self.n += 1

    def rebalance(self, order: list[str], topics: dict[str, tuple[str, ...]]) -> dict[str, dict[str, set[int]]]:
        metadata: dict[str, ConsumerProtocolMemberMetadata] = {}
        for name in order:
            metadata[name] = self.members[name].metadata(set(topics.get(name, ALL)))
        leader = self.members[order[0]]
        given = leader.assign(self.cluster, metadata)
        found = {}
        for name, assignment in given.items():
            self.members[name].on_assignment(assignment)
            found[name] = {topic: set(numbers) for topic, numbers in assignment.assignment}
        return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("partitions", [1, 4, 7])
@pytest.mark.share(2, "partitions", "seed")
def test_a_worker_has_the_same_numbers_of_every_topic_whoever_comes_and_goes(partitions: int, seed: int) -> None:
    rng = random.Random(seed)
    group = Group(partitions)
    group.join()
    for _ in range(8):
        if rng.random() < 0.6 or len(group.members) == 1:
            group.join()
        else:
            del group.members[rng.choice(list(group.members))]
        order = list(group.members)
        rng.shuffle(order)
        found = group.rebalance(order, {})
        for numbers in found.values():
            assert {frozenset(numbers.get(topic, set())) for topic in ALL} == {
                frozenset(numbers.get("attributary.observations.v1", set()))
            }
        everything = [n for numbers in found.values() for n in numbers.get("attributary.models.v1", ())]
        assert sorted(everything) == list(range(partitions))


def test_with_a_worker_of_an_older_release_they_differ_which_the_worker_must_notice() -> None:
    """It does not read the models topic: then the others have all of that, and not all of the observations."""
    group = Group(4)
    group.join()
    group.join()
    old, new = list(group.members)
    found = group.rebalance([new, old], {old: ("attributary.observations.v1", "attributary-state-changelog")})
    assert found[new]["attributary.models.v1"] == {0, 1, 2, 3}
    assert len(found[new]["attributary.observations.v1"]) == 2

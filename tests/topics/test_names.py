"""Topic names are part of the contract: `<prefix>.<noun>.v1`."""

import re

import pytest

from attributary_topics import Topics


@pytest.mark.parametrize("prefix", ["attributary", "shop", "team-a.risk"])
def test_every_topic_is_prefix_noun_version(prefix):
    topics = Topics(prefix)
    assert (topics.observations, topics.models, topics.importances, topics.incidents, topics.dead_letters) == (
        f"{prefix}.observations.v1",
        f"{prefix}.models.v1",
        f"{prefix}.importances.v1",
        f"{prefix}.incidents.v1",
        f"{prefix}.dead-letters.v1",
    )


def test_names_are_distinct_and_legal_in_kafka():
    topics = Topics("attributary")
    properties = {name for name in vars(Topics) if isinstance(vars(Topics)[name], property)} - {"names"}
    names = [getattr(topics, name) for name in properties]
    assert set(names) == set(topics.names)
    assert len(names) == len(set(names)) == 7
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name) for name in names)
    # Kafka's metrics take '.' and '_' for the same character: names must not differ in that alone.
    assert len({name.replace(".", "_") for name in names}) == 7

"""The models of one partition: which are there, which are made, which are refused."""

from __future__ import annotations

import logging

import pytest

from attributary_agents.errors import DamagedStateError
from attributary_agents.state.codec import encode_state
from attributary_agents.worker.models import PartitionModels
from attributary_topics import InvalidRecordError
from tests.agents.stand_ins import config_of

CONFIG = config_of("m", "n")


def models_of(table: dict[bytes, bytes] | None = None, number: int = 0) -> PartitionModels:
    return PartitionModels(number, CONFIG, (table or {}).get)


def stored_of(number: int, offset: int) -> bytes:
    """The bytes of a model whose observations come on a partition."""
    state = models_of(number=number).find_or_make("m")
    state.offset = offset
    return encode_state(state)


def test_a_model_is_made_at_its_first_observation_and_kept() -> None:
    models = models_of()
    assert models.find("m") is None
    assert dict(models) == {}
    made = models.find_or_make("m")
    assert made.partition == 0
    assert models.find("m") is models.find_or_make("m") is models["m"] is made
    assert dict(models) == {"m": made}


def test_a_stored_model_is_loaded_once_and_only_where_its_observations_come() -> None:
    table = {b"m": stored_of(number=3, offset=17)}
    models, elsewhere = models_of(table, number=3), models_of(table, number=4)
    for one in (models, elsewhere):
        one.restore("m")
        one.restore("n")
    assert {model_id: state.offset for model_id, state in models.items()} == {"m": 17}
    loaded = models["m"]
    models.restore("m")
    assert models["m"] is loaded
    assert dict(elsewhere) == {}
    with pytest.raises(InvalidRecordError, match="partition 3, where they began"):
        elsewhere.find_or_make("m")


def test_a_damaged_model_is_refused_from_the_first_look_on_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[bytes] = []

    def load(key: bytes) -> bytes | None:
        asked.append(key)
        raise DamagedStateError("it is torn")

    models = PartitionModels(0, CONFIG, load)
    asked.clear()
    caplog.set_level(logging.ERROR)
    models.restore("m")
    for _ in range(3):
        with pytest.raises(DamagedStateError, match="attributary models reset m"):
            models.find_or_make("m")
    assert asked == [b"m"]
    assert len(caplog.records) == 1
    assert models.refused.keys() == {"m"}
    assert dict(models) == {}


def test_a_state_of_another_partition_is_read_once_and_every_record_of_it_refused() -> None:
    config = config_of()
    state = PartitionModels(0, config, {}.get).find_or_make("m")
    reads = {b"m": encode_state(state)}
    models = PartitionModels(1, config, lambda key: reads.pop(key) if key == b"m" else None)  # as an object is
    models.restore("m")
    for ask in (models.find, models.find_or_make, models.find_or_make):
        with pytest.raises(InvalidRecordError, match="on partition 0"):
            ask("m")
    assert not models.stored

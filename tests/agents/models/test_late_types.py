"""A type that a model holds only after a while is told when it is stored, not only when it can no longer be read."""

from __future__ import annotations

import logging

import pytest
import scipy.stats

from attributary_agents.models.model_state import ModelState, new_state
from attributary_agents.state.checkpoints import PartitionCounters, StoredAt, encode_checkpoint
from attributary_agents.state.codec import encode_state
from attributary_agents.state.names import checkpoint_key
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import GOOD, TOPIC, config_of

CONFIG = config_of("m", "n")
LINE = "allowed: [scipy.stats._distn_infrastructure.rv_continuous_frozen, scipy.stats._continuous_distns.norm_gen]"


def grown() -> ModelState:
    state = new_state("m", CONFIG.models["m"])
    state.partition, state.offset = 0, 7
    return state


def test_it_is_said_once_with_the_line_to_write(caplog: pytest.LogCaptureFixture) -> None:
    state = grown()
    encode_state(state)
    assert not caplog.records
    state.model.distribution = scipy.stats.norm(0, 1)
    encode_state(state)
    encode_state(state)
    (said,) = [one.getMessage() for one in caplog.records]
    assert said.startswith("model m: its state could not be read back at the next start: it holds")
    assert LINE in said


def test_where_it_was_stored_all_the_same_the_dead_letters_have_a_reason_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    state = grown()
    state.model.distribution = scipy.stats.norm(0, 1)
    blob = encode_state(state)
    caplog.clear()
    caplog.set_level(logging.ERROR)
    stored = encode_checkpoint(7, PartitionCounters(consumed=8, used=8), {"m": StoredAt.of(7, blob)})
    partition = Partition(TOPIC, 0, CONFIG, {b"m": blob, checkpoint_key(0): stored}.get)
    (letter,) = partition.handle(Record(TOPIC, 0, 8, 0, b"m", GOOD))
    headers = dict(letter.headers)
    assert headers["attributary-dlq-reason"] == b"foreign_type"
    assert partition.counters.dead_letters["foreign_type"] == 1
    assert LINE in caplog.text

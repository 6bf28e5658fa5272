"""A checkpoint names the states: what is older, another one or gone is refused, what is newer is taken."""

from __future__ import annotations

import logging
from collections.abc import Callable

import orjson
import pytest

from attributary_agents.errors import DamagedStateError
from attributary_agents.models.model_state import new_state
from attributary_agents.state.checkpoints import (
    PartitionCounters,
    StoredAt,
    decode_checkpoint,
    encode_checkpoint,
    load_stored,
    with_stored,
)
from attributary_agents.state.codec import encode_state
from attributary_agents.state.deployment_log import DeploymentLog, encode_log
from attributary_agents.state.names import checkpoint_key, control_checkpoint_key, control_key
from attributary_agents.worker.models import PartitionModels
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from tests.agents.stand_ins import GOOD, TOPIC, config_of

CONFIG = config_of("m", "n")


def state(offset: int, n: int = 0, partition: int = 0) -> bytes:
    made = new_state("m", CONFIG.models["m"])
    made.offset, made.partition, made.n_observations = offset, partition, n
    return encode_state(made)


def checkpoint(**stored: StoredAt) -> bytes:
    return encode_checkpoint(600, PartitionCounters(consumed=601, used=601), stored)


def models(blob: bytes | None, named: StoredAt | None) -> PartitionModels:
    table = {checkpoint_key(0): checkpoint(m=named) if named else checkpoint()}
    return PartitionModels(0, CONFIG, {**table, **({} if blob is None else {b"m": blob})}.get)


class TestCheckpoint:
    def test_names_states_and_is_read_as_before(self) -> None:
        at = {"m": StoredAt.of(7, b"blob"), "n": StoredAt(-1, "ab")}
        blob = encode_checkpoint(9, PartitionCounters(consumed=3, used=2), at)
        counters, offset = decode_checkpoint(blob)
        assert (offset, counters.consumed, counters.used) == (9, 3, 2)
        assert load_stored({b"c": blob}.get, b"c") == at

    def test_of_the_format_before_names_none(self) -> None:
        data = orjson.loads(encode_checkpoint(9, PartitionCounters()))
        del data["stored"]
        blob = orjson.dumps(data | {"format": 2})
        assert decode_checkpoint(blob)[1] == 9
        assert load_stored({b"c": blob}.get, b"c") == {}

    def test_is_written_anew_for_one_model_with_its_offset_and_counters(self) -> None:
        blob = checkpoint(m=StoredAt(5, "a"), n=StoredAt(6, "b"))
        assert with_stored(blob, "m", StoredAt(5, "a")) is None
        for at in (None, StoredAt(8, "c")):
            again = with_stored(blob, "m", at)
            assert again is not None
            assert decode_checkpoint(again) == decode_checkpoint(blob)
            wanted = {"n": StoredAt(6, "b")} | ({"m": at} if at else {})
            assert load_stored({b"c": again}.get, b"c") == wanted


class TestStates:
    @pytest.mark.parametrize("offset", [598, 700])
    def test_that_is_named_or_newer_is_taken_and_named_next(self, offset: int) -> None:
        blob, named = state(offset), StoredAt.of(598, state(598))
        found = models(blob, named)
        found.restore("m")
        assert found["m"].offset == offset
        assert found.stored == {"m": StoredAt.of(offset, blob)}

    @pytest.mark.parametrize(
        ("blob", "said"),
        [
            (lambda: state(300), "goes up to offset 300, and the checkpoint names one up to offset 598"),
            (lambda: state(598, n=3), "is another one, and the checkpoint names one up to offset 598"),
            (lambda: None, "is gone: the checkpoint names one up to offset 598"),
        ],
    )
    def test_that_is_older_another_one_or_gone_is_refused_once_aloud(
        self, blob: Callable[[], bytes | None], said: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        named = StoredAt.of(598, state(598))
        found = models(blob(), named)
        caplog.set_level(logging.ERROR)
        found.restore("m")
        with pytest.raises(DamagedStateError, match="attributary models reset m"):
            found.find_or_make("m")
        assert [one.levelname for one in caplog.records] == ["ERROR"]
        assert said in caplog.text
        assert found.stored == {"m": named}, "the next checkpoint names it still"
        found.find_or_make("n")

    def test_of_which_the_checkpoint_says_nothing_is_taken(self) -> None:
        found = models(state(300), None)
        found.restore("m")
        assert found["m"].offset == 300

    def test_of_a_model_on_another_partition_is_not_named_here(self) -> None:
        found = models(state(300, partition=1), None)
        found.restore("m")
        assert found.stored == {}

    def test_of_a_model_that_is_not_configured_any_more_stays_named(self) -> None:
        named = StoredAt(5, "a")
        found = PartitionModels(0, CONFIG, {checkpoint_key(0): checkpoint(gone=named)}.get)
        found.find_or_make("m")
        assert found.stored["gone"] == named

    def test_observations_of_a_refused_model_are_dead_letters_and_those_of_others_are_not(self) -> None:
        table = {checkpoint_key(0): checkpoint(m=StoredAt.of(598, state(598))), b"m": state(300)}
        partition = Partition(TOPIC, 0, CONFIG, table.get)
        for n, key in enumerate((b"m", b"n", b"m"), 601):
            partition.handle(Record(TOPIC, 0, n, 0, key, GOOD))
        assert partition.counters.dead_letters["damaged_state"] == 2
        assert partition.counters.used == 602


class TestDeployments:
    def log(self, blob: bytes | None, named: StoredAt) -> DeploymentLog:
        table = {control_checkpoint_key(0): checkpoint(m=named)}
        return PartitionModels(0, CONFIG, {**table, **({} if blob is None else {control_key("m", 0): blob})}.get).log(
            "m"
        )

    def test_that_are_named_or_newer_are_taken(self) -> None:
        old, new = encode_log(DeploymentLog(3)), encode_log(DeploymentLog(4))
        assert self.log(old, StoredAt.of(3, old)).offset == 3
        assert self.log(new, StoredAt.of(3, old)).offset == 4

    def test_that_are_older_or_gone_are_refused(self) -> None:
        old, new = encode_log(DeploymentLog(3)), encode_log(DeploymentLog(4))
        for blob, said in ((old, "goes up to offset 3"), (None, "is gone")):
            with pytest.raises(DamagedStateError, match=f"stored deployments of m {said}"):
                self.log(blob, StoredAt.of(4, new))

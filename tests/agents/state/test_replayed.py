"""Which dead letters have been handled again: at most so many, the latest, through a checkpoint."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.errors import StateError
from attributary_agents.state import deduplication as replayed
from attributary_agents.state.checkpoints import PartitionCounters, decode_checkpoint, encode_checkpoint
from attributary_agents.state.deduplication import ReplayedLetters
from attributary_topics import REPLAYED_HEADER

IDS = st.lists(st.integers(0, 12), max_size=60)


def headers(letter_id: bytes) -> list[tuple[str, bytes | None]]:
    return [("trace", b"1"), (REPLAYED_HEADER, letter_id)]


def through_a_checkpoint(letters: ReplayedLetters) -> ReplayedLetters:
    return decode_checkpoint(encode_checkpoint(7, PartitionCounters(replayed=letters)))[0].replayed


@given(IDS, st.integers(0, 60))
def test_the_last_ids_are_known_and_a_checkpoint_at_any_point_changes_nothing(ids: list[int], stored_at: int) -> None:
    most, known, n_repeats = 5, [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replayed, "MOST", most)
        letters = ReplayedLetters()
        for n, number in enumerate(ids):
            if n == stored_at:
                letters = through_a_checkpoint(letters)
            is_repeat = number in known
            assert letters.is_repeat(headers(b"t:0:%d" % number)) is is_repeat
            n_repeats += is_repeat
            known = (known if is_repeat else [*known, number])[-most:]
        assert letters.n_repeats == n_repeats
        assert [number for number in range(13) if letters.knows(b"t:0:%d" % number)] == sorted(known)
        assert through_a_checkpoint(letters) == letters


def test_a_copy_is_what_was_known_then() -> None:
    letters = ReplayedLetters()
    letters.is_repeat(headers(b"a"))
    then = letters.copy()
    letters.is_repeat(headers(b"b"))
    letters.is_repeat(headers(b"a"))
    assert (then.knows(b"a"), then.knows(b"b"), then.n_repeats) == (True, False, 0)
    assert then != letters
    assert through_a_checkpoint(then) == then


def test_records_without_the_header_are_none_and_cost_a_checkpoint_nothing() -> None:
    counters = PartitionCounters()
    before = encode_checkpoint(7, counters)
    assert not counters.replayed.is_repeat([("trace", b"1"), ("trace", b"1")])
    assert not counters.replayed.is_repeat(())
    assert encode_checkpoint(7, counters) == before
    assert b"replayed" not in before


def test_forty_thousand_take_less_than_half_a_megabyte_of_a_checkpoint() -> None:
    letters = ReplayedLetters()
    for n in range(replayed.MOST + 10):
        letters.is_repeat(headers(b"t:0:%d" % n))
    assert not letters.knows(b"t:0:9")
    assert letters.knows(b"t:0:10")
    assert len(encode_checkpoint(7, PartitionCounters(replayed=letters))) < 500_000


@pytest.mark.parametrize("part", [{"ids": "?", "repeats": 1}, {"repeats": 1}, {"ids": "", "repeats": None}, [1]])
def test_what_another_release_has_written_is_said_to_be_that(part: object) -> None:
    blob = orjson.dumps({**orjson.loads(encode_checkpoint(7, PartitionCounters())), "replayed": part})
    with pytest.raises(StateError, match="another release"):
        decode_checkpoint(blob)

"""Offsets that a reader of committed records passes over are noted."""

from __future__ import annotations

import pytest
from support.raw_names import builder

from attributary_agents.kafka import batches
from attributary_agents.kafka.batches import PassedOver
from attributary_agents.kafka.upstream import aiokafka_fetcher

from .upstream.raw_batches import CONTROL, TRANSACTIONAL, fetched, placed


@pytest.fixture
def passed_over(monkeypatch: pytest.MonkeyPatch) -> PassedOver:
    """What is noted of the topic of these tests."""
    notes = PassedOver()
    notes.follow("t")
    monkeypatch.setattr(aiokafka_fetcher, "PASSED_OVER", notes)
    return notes


def transactions() -> tuple[bytes, list[tuple[int, int]]]:
    """Offsets 0 to 2 committed, marker 3; 4 to 6 and 8 aborted, marker 9; 7 plain, hole 10 to 11, 12 plain; marker 13.

    With what the broker says of it: producer and first offset of what was aborted.
    """
    three, one = (bytes(builder([(b"k", b"v", [])] * n).build()) for n in (3, 1))
    commit, abort = (bytes(builder([(bytes((0, 0, 0, kind)), b"\0" * 6, [])]).build()) for kind in (1, 0))
    data = (
        placed(three, 0, TRANSACTIONAL, 1)
        + placed(commit, 3, TRANSACTIONAL | CONTROL, 1)
        + placed(three, 4, TRANSACTIONAL, 2)
        + placed(one, 7)
        + placed(one, 8, TRANSACTIONAL, 2)
        + placed(abort, 9, TRANSACTIONAL | CONTROL, 2)
        + placed(one, 12)
        + placed(commit, 13, TRANSACTIONAL | CONTROL, 3)
    )
    return data, [(2, 4)]


def test_markers_and_aborted_records_are_noted_and_nothing_else(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    found, following = fetched(data, aborted)
    assert [one.offset for one in found] == [0, 1, 2, 7, 12]
    assert following == 14
    held = [passed_over.count("t", 0, offset, offset + 1) for offset in range(14)]
    assert [offset for offset, n in enumerate(held) if n] == [3, 4, 5, 6, 8, 9, 13]
    assert passed_over.count("t", 0, 0, 14) == 1, "what was asked about is forgotten up to there"


def test_what_is_aborted_is_noted_where_an_answer_ends_in_it(passed_over: PassedOver) -> None:
    data = placed(bytes(builder([(b"k", b"v", [])] * 3).build()), 4, TRANSACTIONAL, 2)
    assert fetched(data, [(2, 4)], first=4) == ([], 7)
    assert passed_over.count("t", 0, 0, 9) == 3


def test_notes_are_counted_over_any_range_and_tell_where_the_next_record_may_be(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    without = {3, 4, 5, 6, 8, 9, 13}
    for begin in range(15):
        fetched(data, aborted)
        for end in range(14, begin, -1):
            assert passed_over.count("t", 0, begin, end) == len(without & set(range(begin, end)))
        assert passed_over.next_offset("t", 0, begin) == next(i for i in range(begin, 99) if i not in without)


def test_notes_begin_again_where_a_reader_goes_back(passed_over: PassedOver) -> None:
    data, aborted = transactions()
    fetched(data, aborted)
    plain = bytes(builder([(b"k", b"v", [])] * 20).build())
    assert len(fetched(placed(plain, 0), first=5)[0]) == 15  # the topic was made again, and is read from 5 on
    assert passed_over.count("t", 0, 0, 20) == 2, "of 3 and 4 nothing else is known"
    fetched(placed(plain, 0))
    assert passed_over.count("t", 0, 0, 20) == 0


def test_only_followed_topics_are_noted_and_the_notes_are_bounded(
    passed_over: PassedOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = bytes(builder([(b"\0\0\0\1", b"\0" * 6, [])]).build())
    data = b"".join(placed(marker, offset, TRANSACTIONAL | CONTROL, 1) for offset in range(0, 100, 2))
    monkeypatch.setattr(batches, "MAX_NOTES", 10)
    fetched(data)
    assert passed_over.count("t", 0, 0, 100) == 10
    assert passed_over.count("t", 0, 80, 100) == 10, "the oldest are forgotten"
    others = PassedOver()
    monkeypatch.setattr(aiokafka_fetcher, "PASSED_OVER", others)
    fetched(data)
    assert others.count("t", 0, 0, 100) == 0

"""What is taken next of several partitions: sorted by time where all is there, and with a wait where more may come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.sources.mappers.reader import Merge

Timed = tuple[int, int, str]
"""Time, number in its queue, place."""


def filled(queues: list[list[int]], wait_s: float = 1.0) -> Merge[str, Timed]:
    merge: Merge[str, Timed] = Merge(wait_s, most_records=3, most_bytes=100)
    for number, times in enumerate(queues):
        place = f"p{number}"
        merge.add(place, 0, len(times))
        merge.extend(place, [((time, n, place), 1) for n, time in enumerate(times)])
        merge.note(place, len(times), len(times))
    return merge


def time_heads(merge: Merge[str, Timed]) -> None:
    for place in merge.untimed:
        merge.set_time(place, merge.head(place)[0])


def drain(merge: Merge[str, Timed], now: float = 0.0) -> list[Timed]:
    taken = []
    time_heads(merge)
    while merge.waits_s(now) == 0:
        taken.append(merge.pop()[1])
        time_heads(merge)
    return taken


@given(st.lists(st.lists(st.integers(0, 20)), max_size=5))
def test_of_queues_in_order_it_is_what_sorting_gives(queues: list[list[int]]) -> None:
    ordered = [sorted(times) for times in queues]
    taken = drain(filled(ordered))
    assert [time for time, _, _ in taken] == sorted(time for times in ordered for time in times)


@given(st.lists(st.lists(st.integers(0, 20)), max_size=5))
def test_of_any_queues_each_keeps_its_order_and_nothing_is_later_than_the_heads_of_the_others(
    queues: list[list[int]],
) -> None:
    taken = drain(filled(queues))
    left = {f"p{number}": list(times) for number, times in enumerate(queues)}
    for time, _, place in taken:
        assert time == min(times[0] for times in left.values() if times)
        assert left[place].pop(0) == time
    assert not any(left.values())


def test_of_equal_times_that_of_the_first_place_is_taken_first() -> None:
    assert [place for _, _, place in drain(filled([[5, 5], [5]]))] == ["p0", "p0", "p1"]


class TestWaiting:
    def test_for_a_place_that_is_not_at_its_end_lasts_so_long_and_no_longer(self) -> None:
        merge = filled([[1, 2], []])
        merge.note("p1", 0, 7)
        time_heads(merge)
        assert merge.waits_s(10.0) == 1.0
        assert merge.waits_s(10.75) == 0.25
        assert merge.waits_s(11.0) == 0
        assert drain(merge, 11.0) == [(1, 0, "p0"), (2, 1, "p0")]

    def test_begins_anew_for_a_place_that_has_brought_something(self) -> None:
        merge = filled([[1, 2, 9], []])
        merge.note("p1", 0, 7)
        time_heads(merge)
        merge.waits_s(0.0)
        assert len(drain(merge, 1.0)) == 3
        merge.extend("p0", [((11, 3, "p0"), 1)])
        merge.extend("p1", [((10, 0, "p1"), 1)])
        merge.note("p1", 1, 7)
        time_heads(merge)
        assert merge.pop()[1] == (10, 0, "p1")
        assert merge.waits_s(2.0) == 1.0

    def test_is_not_for_a_place_at_its_end(self) -> None:
        merge = filled([[1], []])
        assert drain(merge) == [(1, 0, "p0")]

    def test_ends_when_it_is_known_that_the_rest_has_no_records(self) -> None:
        merge = filled([[1], []])
        merge.note("p1", 0, 7)
        merge.note("p1", 7, 7)  # markers of transactions
        time_heads(merge)
        assert merge.waits_s(0.0) == 0

    def test_is_for_ever_where_nothing_is_there(self) -> None:
        assert filled([[], []]).waits_s(0.0) is None


def test_what_is_kept_of_a_place_is_bounded_by_records_and_by_bytes() -> None:
    merge = filled([[1, 2], [1]])
    assert not merge.is_full("p0")
    merge.extend("p0", [((3, 2, "p0"), 1)])
    merge.extend("p1", [((3, 2, "p1"), 100)])
    assert merge.is_full("p0")
    assert merge.is_full("p1")
    time_heads(merge)
    merge.pop()
    assert not merge.is_full("p0")


def test_lag_and_end_are_of_what_was_taken_not_of_what_was_read() -> None:
    merge = filled([[1, 2]])
    merge.note("p0", 2, 5)
    assert (merge.lag("p0"), merge.is_read_to({"p0": 2})) == (5, False)
    time_heads(merge)
    merge.waits_s(0.0)
    drain(merge, 9.0)
    assert (merge.lag("p0"), merge.is_read_to({"p0": 2}), merge.is_read_to({"p0": 3})) == (3, True, False)


def test_a_record_without_a_time_holds_nothing_up() -> None:
    merge = Merge[str, str](1.0)
    for place, records in (("a", ["tombstone", "one"]), ("b", ["two"])):
        merge.add(place, 0, len(records))
        merge.extend(place, [(record, 1) for record in records])
        merge.note(place, len(records), len(records))
    times = {"tombstone": None, "one": 1, "two": 2}
    taken = []
    while not merge.is_empty:
        for place in merge.untimed:
            merge.set_time(place, times[merge.head(place)])
        taken.append(merge.pop()[1])
    assert taken == ["tombstone", "one", "two"]

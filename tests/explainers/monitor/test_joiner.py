"""The join of observations and labels: against one that looks through the whole past, and its accounts."""

from __future__ import annotations

import pickle
from dataclasses import asdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_explainers.monitor.joiner import BUCKETS_S, Joiner
from tests.agents.models.joining.naive import NAMES, NaiveJoiner

RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["observation", "label"]),
        st.sampled_from("abcdefghij"),
        st.integers(0, 60),
        st.sampled_from([0, 1]),
    ),
    max_size=80,
)
"""What it is, its id, its time and its label."""


def take(joiner: Joiner, record: tuple[str, str, int, int]) -> tuple[str, Any] | None:
    what, key, time, y = record
    joiner.move(time)
    if what == "label":
        joined = joiner.label(key, time, y)
    elif joiner.knows(key):
        joiner.repeat()
        return None
    else:
        joined, _ = joiner.observe(key, time, {"key": key}, None, "1", 0)
    return None if joined is None else (joined.observation.x["key"], joined.y)


def check_accounts(joiner: Joiner) -> None:
    n = joiner.counts
    assert n.observed == n.joined + joiner.n_waiting + n.expired_ttl + n.expired_cap
    assert n.labels == n.joined + joiner.n_early + n.orphaned + n.duplicate + n.late


@settings(max_examples=500, deadline=None)
@given(records=RECORDS, ttl=st.integers(0, 30), cap=st.integers(1, 6), stop=st.integers(0, 80))
def test_each_record_becomes_what_the_whole_past_says(records: Any, ttl: int, cap: int, stop: int) -> None:
    joiner, naive = Joiner(ttl, cap), NaiveJoiner(ttl, cap)
    for n, record in enumerate(records):
        if n == stop:  # a worker is killed here, and another one goes on
            stored = pickle.dumps(joiner.snapshot())
            joiner = Joiner(ttl, cap)
            joiner.restore(pickle.loads(stored))
            assert pickle.dumps(joiner.snapshot()) == stored
        what, key, time, y = record
        expected = naive.observation(key, time) if what == "observation" else naive.label(key, time, y)
        assert take(joiner, record) == expected
        assert {name: getattr(joiner.counts, name) for name in NAMES} == naive.n
        assert (joiner.n_waiting, joiner.n_early) == (naive.count("waiting"), naive.count("early"))
        check_accounts(joiner)


def test_an_observation_that_comes_late_itself_has_its_whole_time() -> None:
    joiner = Joiner(ttl_ms=100, max_waiting=10)
    take(joiner, ("observation", "now", 1000, 0))
    take(joiner, ("observation", "an hour late", 10, 0))
    take(joiner, ("label", "an hour late", 1099, 1))
    assert asdict(joiner.counts)["joined"] == 1
    take(joiner, ("label", "now", 1101, 1))
    assert (joiner.counts.late, joiner.counts.expired_ttl) == (1, 1)


def test_the_delays_are_counted_in_their_buckets_and_the_median_is_theirs() -> None:
    joiner = Joiner(ttl_ms=10**12, max_waiting=1000)
    delays_s = [0.5, 1, 2, 30, 59, 61, 3601, 10**7]
    for n, delay in enumerate(delays_s):
        take(joiner, ("observation", str(n), 0, 0))
        take(joiner, ("label", str(n), round(delay * 1000), 0))
    expected = [0] * (len(BUCKETS_S) + 1)
    for delay in delays_s:
        expected[sum(delay > bound for bound in BUCKETS_S)] += 1
    assert joiner.delays == expected
    assert joiner.median_delay_s == (30 + 59) / 2
    assert joiner.total_delay_ms == round(sum(delays_s) * 1000)


def test_with_another_ttl_what_waits_has_another_deadline() -> None:
    joiner = Joiner(ttl_ms=1000, max_waiting=10)
    take(joiner, ("observation", "a", 0, 0))
    shorter = Joiner(ttl_ms=10, max_waiting=10)
    shorter.restore(joiner.snapshot())
    assert len(shorter.move(11)) == 1


def test_observations_of_many_shapes_do_not_pile_up_names() -> None:
    joiner = Joiner(ttl_ms=5, max_waiting=10)
    for n in range(1000):
        joiner.move(n)
        joiner.observe(str(n), n, {f"f{n}": 1.0}, None, "1", 0)
    assert len(joiner._names) <= 65

"""What of a partition is known over restarts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_agents.kafka.readers import MOST_NOTE_BYTES
from attributary_agents.serve.webhooks.remembered import KNOWN, NOTED, Remembered


def test_an_event_is_new_once_and_again_when_it_is_forgotten() -> None:
    known = Remembered()
    assert known.take("bank:obs:0:1")
    assert not known.take("bank:obs:0:1")
    assert known.take("bank:obs:0:1:1")
    known.forget(["bank:obs:0:1"])
    assert known.take("bank:obs:0:1")


def test_the_next_process_knows_the_last_events_and_what_was_under_way() -> None:
    first = Remembered()
    for n in range(NOTED + 5):
        first.take(f"m:{n}")
    second = Remembered(first.note("ab12", {"ops": 2, "chat": 0}))
    assert (second.owner, dict(second.open)) == ("ab12", {"ops": 2})
    assert [n for n in range(NOTED + 5) if second.take(f"m:{n}")] == [0, 1, 2, 3, 4]


def test_what_two_know_is_known_to_one() -> None:
    first, second = Remembered(), Remembered()
    first.take("a")
    second.take("b")
    first.learn(second)
    assert not first.take("a")
    assert not first.take("b")


def test_what_is_known_is_bounded() -> None:
    known = Remembered()
    for n in range(KNOWN + 1):
        known.take(str(n))
    assert not known.take("1")
    assert known.take("0")


@settings(max_examples=25)
@given(
    st.lists(st.text(), max_size=400),
    st.dictionaries(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), st.integers(0, 10**6), max_size=80),
)
def test_a_note_fits_whatever_it_holds(ids: list[str], under_way: dict[str, int]) -> None:
    known = Remembered()
    for event_id in ids:
        known.take(event_id)
    assert len(known.note("0123456789ab", under_way).encode("ascii")) <= MOST_NOTE_BYTES


@given(
    st.text()
    | st.sampled_from(
        [
            "null",
            "[]",
            '{"by": 1, "open": 3}',
            '{"open": {"a": "b"}}',
            '{"ids": "é"}',
            '{"ids": 7}',
            '{"open": {"a": 1e999}}',
        ]
    )
)
def test_a_note_of_somebody_else_is_taken_as_empty(note: str) -> None:
    assert Remembered(note).take("anything")

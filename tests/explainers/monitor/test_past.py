"""What is remembered of observations that have ended: any time and label comes back, through storing too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attributary_explainers.monitor.joiner import Ended, Past


@given(
    st.lists(
        st.tuples(st.integers(-(2**62), 2**61), st.none() | st.integers() | st.text(max_size=3) | st.booleans()),
        max_size=20,
    )
)
def test_each_is_found_as_it_ended_and_forgotten_at_its_time(ends: list[tuple[int, object]]) -> None:
    past = Past(keep_ms=0, most=100)
    ends.sort(key=lambda one: one[0])
    for n, (at, y) in enumerate(ends):
        past.note(str(n), at, y, ended=Ended.EXPIRED if y is None else Ended.JOINED)
    for known in (past, Past(0, 100).restore(past.snapshot())):
        for n, (_, y) in enumerate(ends):
            assert known.find(str(n)) is (Ended.EXPIRED if y is None else Ended.JOINED)
            assert y is None or known.has_label(str(n), y)
            assert y is None or not known.has_label(str(n), (y, "other"))
        for at in sorted({at for at, _ in ends}):
            known.forget(at)
            assert [n for n in range(len(ends)) if known.find(str(n))] == [
                n for n, (then, _) in enumerate(ends) if then >= at
            ]


def test_true_and_one_and_their_texts_are_four_labels() -> None:
    past = Past(10, 10)
    past.note("a", 0, True, ended=Ended.JOINED)
    assert [past.has_label("a", y) for y in (True, 1, "1", "True")] == [True, False, False, False]

"""What records of the output topics are to the store, and which are none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.serve.answers import IncidentRow
from attributary_agents.serve.reading import arrived, kinds_of
from attributary_agents.serve.store.rows import Arrived, incident_row
from attributary_agents.serve.store.store import Store
from attributary_topics import DeadLetter, InvalidRecordError, Source, Topics, encode_json
from tests.agents.serve.incidents import incident_event
from tests.agents.serve.store.events import T0, importance

KINDS = ("importance", "incident", "dead_letter", "status")


def record(
    value: bytes | None, *headers: tuple[str, bytes | None], key: bytes | None = b"bank", timestamp: Any = T0
) -> Any:
    return SimpleNamespace(
        topic="t", partition=1, offset=7, key=key, value=value, headers=list(headers), timestamp=timestamp
    )


def test_each_topic_has_its_kind() -> None:
    assert kinds_of(Topics("shop")) == {
        "shop.importances.v1": "importance",
        "shop.incidents.v1": "incident",
        "shop.dead-letters.v1": "dead_letter",
        "shop.status.v1": "status",
    }


class TestTime:
    @pytest.mark.parametrize(
        ("ce_time", "timestamp", "expected"),
        [
            (b"2026-11-01T10:00:00.250Z", 5, 1_793_527_200_250),
            (b"yesterday", 5, 5),
            (b"\xff", 5, 5),
            (None, 5, 5),
            (None, -1, None),
            (None, 2**62, None),
            (b"0001-01-01T00:00:00Z", 7, 7),
        ],
    )
    def test_is_that_of_the_event_or_else_of_the_record(
        self, ce_time: bytes | None, timestamp: int, expected: int | None
    ) -> None:
        headers = [] if ce_time is None else [("ce_time", ce_time)]
        assert arrived(record(b"{}", *headers, timestamp=timestamp), "incident").time_ms == expected


def test_the_id_is_that_of_the_event_or_else_its_place() -> None:
    assert arrived(record(b"{}", ("ce_id", b"bank:o:0:3:1")), "importance").id == "bank:o:0:3:1"
    assert arrived(record(b"{}"), "importance").id == "t:1:7"


def test_of_a_dead_letter_no_value_is_kept() -> None:
    letter = DeadLetter(
        b"bank", b"secret", [], Source("o", 2, 9), 5, "decode", "invalid_json", "ValueError", "secret message"
    )
    found = arrived(record(letter.value, *letter.all_headers()), "dead_letter")
    assert (found.id, found.model_id, found.time_ms) == ("o:2:9", "bank", T0)
    assert found.event == {"reason": "invalid_json", "stage": "decode"}
    assert "secret" not in repr(found)


def test_a_status_without_a_value_takes_it_back() -> None:
    assert arrived(record(None), "status").event == {}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
GOOD = importance(T0, 9, quality={"f1": (0.5, None)}).event


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """An importance event, or an incident, with one or two of its parts replaced by something else."""
    event: dict[str, Any] = dict(draw(st.sampled_from((GOOD, incident_event()))))
    for name in draw(st.lists(st.sampled_from(sorted(event)), min_size=1, max_size=2)):
        event[name] = draw(JSON)
    if draw(st.booleans()):
        event["event"] = draw(st.sampled_from(("incident", "dependence")) | JSON)
    return encode_json(event)


@pytest.fixture(scope="module")
def store() -> Store:
    return Store()


@given(
    value=st.none() | st.binary(max_size=40) | JSON.map(encode_json) | spoilt(),
    key=st.none() | st.binary(max_size=20) | st.just(b"bank"),
    kind=st.sampled_from(KINDS),
    headers=st.lists(
        st.tuples(st.sampled_from(("ce_id", "ce_time", "x", "attributary-dlq-id")), st.none() | st.binary(max_size=9)),
        max_size=3,
    ),
    timestamp=st.integers(-1, 2**62),
)
def test_whatever_is_on_a_topic_stops_nothing(
    store: Store, value: Any, key: Any, kind: Any, headers: Any, timestamp: int
) -> None:
    try:
        found: list[Arrived] = [arrived(record(value, *headers, key=key, timestamp=timestamp), kind)]
    except InvalidRecordError:
        found = []
    store.take(found, {("t", 0): 1})
    for model in store.models():
        for one in model.explainers:
            assert store.window(model.model_id, one.explainer) is not None
    for one in store.incidents():
        IncidentRow(**incident_row(one))
    good = importance(T0, 9, model_id="good")
    assert len(store.take([good])) <= 1
    store.trim(T0)
    assert store.model("good") is not None

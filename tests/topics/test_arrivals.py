"""Records of models whose observations come in parts: what is read of each, and each fault by its text."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from attributary_topics import (
    LABEL,
    OBSERVATION,
    REASONS,
    REQUEST,
    RESPONSE,
    InvalidRecordError,
    LateLabel,
    Needs,
    Observation,
    Response,
    decode_arrival,
)
from attributary_topics.arrivals import MAX_ID_LENGTH, kind_of_record

LATE = Needs(id=True, label=False, kinds=frozenset({OBSERVATION, LABEL}))
MIRROR = Needs(label=False, prediction=True)
PAIRED = Needs(label=False, prediction=True, kinds=frozenset({OBSERVATION, REQUEST, RESPONSE}))
X = {"age": 41.5}


def read(needs: Needs, kind: str = OBSERVATION, /, **value: Any) -> Any:
    return decode_arrival("credit", orjson.dumps(value), kind, needs)


def test_an_observation_that_waits_for_its_label_has_an_id_a_time_and_what_was_predicted_elsewhere() -> None:
    read_one = read(LATE, x=X, id=17, time="2026-05-01T00:00:00Z", y_pred={"yes": 0.75})
    assert read_one == Observation("credit", X, None, {"yes": 0.75}, "17", 1_777_593_600_000)
    assert read(LATE, x=X, id="a") == Observation("credit", X, None, None, "a", None)
    assert read(LATE, x=X, id="a", y=None).y is None, "a label that is null is none"


def test_a_label_and_a_response_have_an_id_and_what_they_say() -> None:
    assert read(LATE, LABEL, id="a", y="yes", time=1_777_593_600) == LateLabel("credit", "a", "yes", 1_777_593_600_000)
    assert read(PAIRED, RESPONSE, id="a", y_pred=0.5) == Response("credit", "a", 0.5, None)


def test_a_request_has_no_prediction_yet() -> None:
    assert read(PAIRED, REQUEST, x=X, id="a#0") == Observation("credit", X, None, None, "a#0", None)


def test_a_request_has_an_id_and_an_observation_of_a_mirror_needs_none() -> None:
    assert read(MIRROR, x=X, y_pred="yes") == Observation("credit", X, None, "yes", None, None)
    with pytest.raises(InvalidRecordError, match=r"^id: expected the id by which observation and label are joined"):
        read(PAIRED, REQUEST, x=X, y_pred=1)


NO_MORE = "the configuration has no more for the model 'credit', got"

# needs, kind, value, reason, the whole text
FAULTS: list[tuple[Needs, str, dict[str, Any], str, str]] = [
    (
        LATE,
        OBSERVATION,
        {"x": X},
        "missing_id",
        "id: expected the id by which observation and label are joined, got None",
    ),
    (
        LATE,
        LABEL,
        {"id": "", "y": 1},
        "missing_id",
        "id: expected the id by which observation and label are joined, got ''",
    ),
    (
        LATE,
        LABEL,
        {"id": True, "y": 1},
        "wrong_type",
        f"id: expected a text of at most {MAX_ID_LENGTH} characters, or an integer, got True",
    ),
    (
        LATE,
        OBSERVATION,
        {"id": 1.5, "x": X},
        "wrong_type",
        f"id: expected a text of at most {MAX_ID_LENGTH} characters, or an integer, got 1.5",
    ),
    (
        LATE,
        OBSERVATION,
        {"id": "a", "x": X, "y": 1},
        "unexpected_label",
        "y: expected none: the labels of this model come by themselves, or never (labels, mode), got 1",
    ),
    (
        LATE,
        OBSERVATION,
        {"id": "a", "x": X, "time": "yesterday"},
        "wrong_time",
        "time: expected a number since 1970 or a time in RFC 3339, got 'yesterday'",
    ),
    (LATE, LABEL, {"id": "a"}, "missing_label", "y: expected the label or target, got None"),
    (LATE, LABEL, {"id": "a", "y": [1]}, "wrong_type", "y: expected a string, a number or a boolean, got [1]"),
    (LATE, OBSERVATION, {"id": "a", "x": {}}, "missing_feature", "x: expected at least one feature, got {}"),
    (
        LATE,
        RESPONSE,
        {"id": "a", "y_pred": 1},
        "unexpected_record",
        f"attributary-record: expected label or observation: {NO_MORE} 'response'",
    ),
    (
        MIRROR,
        LABEL,
        {"id": "a", "y": 1},
        "unexpected_record",
        f"attributary-record: expected observation: {NO_MORE} 'label'",
    ),
    (
        MIRROR,
        OBSERVATION,
        {"x": X},
        "missing_prediction",
        "y_pred: expected the logged prediction: a label, a finite number, or an object of class to probability, "
        "got None",
    ),
    (
        PAIRED,
        RESPONSE,
        {"id": "a", "y_pred": {}},
        "missing_prediction",
        "y_pred: expected the logged prediction: a label, a finite number, or an object of class to probability, "
        "got {}",
    ),
]


@pytest.mark.parametrize(("needs", "kind", "value", "reason", "text"), FAULTS)
def test_a_fault_is_told_with_its_reason_and_its_text(
    needs: Needs, kind: str, value: dict[str, Any], reason: str, text: str
) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        read(needs, kind, **value)
    assert (caught.value.reason, str(caught.value)) == (reason, text)
    assert reason in REASONS


@pytest.mark.parametrize(
    ("kind", "needs", "content"),
    [
        (OBSERVATION, LATE, "x"),
        (LABEL, LATE, "id and y"),
        (REQUEST, PAIRED, "x and id"),
        (RESPONSE, PAIRED, "id and y_pred"),
    ],
)
def test_what_is_no_object_is_told_by_what_the_record_should_hold(kind: str, needs: Needs, content: str) -> None:
    for value, reason in ((None, "empty_value"), (b"[1]", "wrong_type")):
        with pytest.raises(InvalidRecordError, match=f"^value: expected a JSON object with {content}, got") as caught:
            decode_arrival("credit", value, kind, needs)
        assert caught.value.reason == reason
    with pytest.raises(InvalidRecordError, match="at most 3 bytes"):
        decode_arrival("credit", b'{"x": 1}', kind, needs, max_bytes=3)


def test_the_longest_id_is_taken_and_a_longer_one_is_not() -> None:
    assert read(LATE, LABEL, id="x" * MAX_ID_LENGTH, y=1).id == "x" * MAX_ID_LENGTH
    with pytest.raises(InvalidRecordError, match="at most 1000 characters") as caught:
        read(LATE, LABEL, id="x" * (MAX_ID_LENGTH + 1), y=1)
    assert len(str(caught.value)) < 400


def test_the_header_says_what_a_record_is() -> None:
    assert kind_of_record(None) == OBSERVATION
    assert [kind_of_record(kind.encode()) for kind in (LABEL, REQUEST, RESPONSE)] == [LABEL, REQUEST, RESPONSE]
    for header in (b"", b"Label", b"\xff"):
        with pytest.raises(InvalidRecordError, match="one of observation, label, request, response") as caught:
            kind_of_record(header)
        assert caught.value.reason == "unexpected_record"

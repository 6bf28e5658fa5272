"""Logs of model servers: what KServe and Seldon Core 2 write, and what tensors become.

Payloads are those of public documentation where a comment names it.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.sources.formats.base import Decoded
from attributary_agents.sources.formats.inference import OpenInferenceFormat
from attributary_agents.sources.formats.inference_json import MOST_ROWS
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import record

FORMAT = OpenInferenceFormat()

# https://kserve.github.io/website/docs/model-serving/predictive-inference/logger/basic-logger
KSERVE_ID = "e58f1edd-43bc-42f6-a10a-d1adb5cab831"
KSERVE_V1_REQUEST = b'{"instances": [[6.8,  2.8,  4.8,  1.4],[6.0,  3.4,  4.5,  1.6]]}'
KSERVE_V1_RESPONSE = b'{"predictions": [1, 1]}'
# https://kserve.github.io/website/docs/model-serving/predictive-inference/frameworks/sklearn
KSERVE_V2_REQUEST = {
    "inputs": [{"name": "input-0", "shape": [1, 4], "datatype": "FP32", "data": [[5.1, 3.5, 1.4, 0.2]]}]
}
KSERVE_V2_RESPONSE = {
    "id": "3befffaa-9f4f-4c0b-97fb-3d267d070153",
    "model_name": "sklearn-v2-iris",
    "model_version": "1",
    "outputs": [{"name": "output-0", "shape": [1], "datatype": "INT64", "data": [2]}],
}


def kserve(kind: str, content_type: str = "application/json", **more: str) -> list[tuple[str, bytes | None]]:
    """Headers of KServe's logger as Knative's Kafka sink writes them."""
    attributes = {
        "ce_specversion": "1.0",
        "ce_type": f"org.kubeflow.serving.inference.{kind}",
        "ce_source": "http://localhost:9081/",
        "ce_id": KSERVE_ID,
        "ce_time": "2023-01-30T10:45:00.000Z",
        "ce_inferenceservicename": "sklearn-iris",
        "ce_namespace": "default",
        "content-type": content_type,
        **more,
    }
    return [(name, value.encode()) for name, value in attributes.items()]


def decoded(message: Any, kind: str = "request") -> list[Decoded]:
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    return FORMAT.decode_now(record(value, kserve(kind)))


def rows(*tensors: dict[str, Any]) -> list[dict[str, Any] | None]:
    return [one.x for one in decoded({"inputs": list(tensors)})]


def tensor(name: str, shape: Any, data: Any, datatype: str = "FP64", **parameters: Any) -> dict[str, Any]:
    said = {"name": name, "shape": shape, "datatype": datatype, "data": data}
    return {**said, "parameters": parameters} if parameters else said


def refusal(value: bytes, headers: Any = (), topic: str = "t") -> InvalidRecordError:
    with pytest.raises(InvalidRecordError) as caught:
        FORMAT.decode_now(record(value, headers, topic=topic))
    return caught.value


# curl sends forms where nobody says otherwise, and the logger logs what was sent
@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded"])
def test_a_request_of_version_1_is_an_observation_for_each_instance(content_type: str) -> None:
    found = FORMAT.decode_now(record(KSERVE_V1_REQUEST, kserve("request", content_type)))
    names = [f"instances_{i}" for i in range(4)]
    first, second = (dict(zip(names, row, strict=True)) for row in ([6.8, 2.8, 4.8, 1.4], [6.0, 3.4, 4.5, 1.6]))
    at = "2023-01-30T10:45:00.000Z"
    assert found == [
        Decoded({"inputs": x, "id": KSERVE_ID, "row": n, "kind": "request"}, "request", f"{KSERVE_ID}#{n}", at, x)
        for n, x in enumerate((first, second))
    ]


def test_its_response_has_the_same_ids() -> None:
    found = decoded(KSERVE_V1_RESPONSE, "response")
    assert [(one.id, one.kind, one.x) for one in found] == [(f"{KSERVE_ID}#{i}", "response", None) for i in range(2)]
    assert found[1].value == {"outputs": {"predictions": 1}, "id": KSERVE_ID, "row": 1, "kind": "response"}


def test_request_and_response_of_version_2() -> None:
    (request,) = decoded(KSERVE_V2_REQUEST)
    assert request.x == {"input-0_0": 5.1, "input-0_1": 3.5, "input-0_2": 1.4, "input-0_3": 0.2}
    (response,) = decoded(KSERVE_V2_RESPONSE, "response")
    assert (request.id, response.id) == (f"{KSERVE_ID}#0", f"{KSERVE_ID}#0")
    assert response.value == {
        "outputs": {"output-0": 2},
        "id": KSERVE_ID,
        "row": 0,
        "kind": "response",
        "model_name": "sklearn-v2-iris",
        "model_version": "1",
    }


def test_instances_of_version_1_may_have_names_or_be_single_values() -> None:
    found = decoded({"instances": [{"age": 41, "job": "admin"}, 5, [6], ["a", None]]})
    assert [one.x for one in found] == [
        {"age": 41, "job": "admin"},
        {"instances": 5},
        {"instances": 6},
        {"instances_0": "a", "instances_1": None},
    ]


def test_an_event_as_a_whole_in_the_value() -> None:
    event = {
        "specversion": "1.0",
        "id": "q-1",
        "source": "s",
        "type": "org.kubeflow.serving.inference.response",
        "time": "2026-05-01T00:00:00Z",
        "data": KSERVE_V2_RESPONSE,
    }
    headers = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
    (found,) = FORMAT.decode_now(record(json.dumps(event).encode(), headers))
    assert (found.id, found.time, found.kind, found.value["outputs"]) == (
        "q-1#0",
        "2026-05-01T00:00:00Z",
        "response",
        {"output-0": 2},
    )


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"inputs": [], "outputs": [{"name": "wanted"}]}, None),
        ({**KSERVE_V2_REQUEST, "outputs": [{"name": "wanted"}]}, "request"),
        (KSERVE_V2_RESPONSE, "response"),
        ({"instances": [1]}, "request"),
        ({"predictions": [1]}, "response"),
    ],
)
def test_without_an_event_the_message_says_what_it_is(message: dict[str, Any], kind: str | None) -> None:
    found = FORMAT.decode_now(record(json.dumps(message).encode(), key=b"k-1"))
    assert {one.kind for one in found} == ({kind} if kind else set())
    assert [one.id for one in found] == ["k-1#0"] * len(found)


def test_without_an_event_or_a_key_the_id_is_that_of_the_message() -> None:
    def ids(message: dict[str, Any], key: bytes | None) -> list[str | int | None]:
        return [one.id for one in FORMAT.decode_now(record(json.dumps(message).encode(), key=key))]

    assert ids(KSERVE_V2_RESPONSE, b"\xff") == ["3befffaa-9f4f-4c0b-97fb-3d267d070153#0"]
    assert ids(KSERVE_V2_REQUEST, None) == [None]


def test_columns_have_names() -> None:
    assert rows(tensor("a", [2], [1.5, 2.5]), tensor("b", [2, 1], [[3], [4]], "INT64")) == [
        {"a": 1.5, "b": 3},
        {"a": 2.5, "b": 4},
    ]
    assert rows(tensor("a", [2, 2], [1, 2, 3, 4])) == [{"a_0": 1, "a_1": 2}, {"a_0": 3, "a_1": 4}]
    named = [{"age": 1, "sex": 2}, {"age": 3, "sex": 4}]
    assert rows(tensor("a", [2, 2], [[1, 2], [3, 4]], names=["age", "sex"])) == named
    assert rows(tensor("a", [2, 2], [[1, 2], [3, 4]], names="age, sex")) == named
    assert rows(tensor("a", [0, 2], [])) == []


def test_texts_are_texts() -> None:
    assert rows(tensor("a", [2], ["x", "ä"], "BYTES")) == [{"a": "x"}, {"a": "ä"}]
    assert rows(tensor("a", [2], ["eA==", "/w=="], "BYTES", content_type="base64")) == [{"a": "x"}, {"a": b"\xff"}]


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (
            [tensor("a", [2], [1, 2]), tensor("b", [3], [1, 2, 3])],
            "inputs.b: expected 2 rows, as the tensors before it have, got 3",
        ),
        ([tensor("a", [2, 2], [1, 2, 3])], "inputs.a: expected as many values as the shape [2, 2] says, got 3"),
        ([tensor("a", [10**9, 0], [])], "inputs.a: expected as many values as the shape [1000000000, 0] says, got 0"),
        ([tensor("a", [1, 2, 2], [1, 2, 3, 4])], "inputs.a: expected a shape [rows] or [rows, columns], got [1, 2, 2]"),
        ([tensor("a", [], [1])], "inputs.a: expected a shape [rows] or [rows, columns], got []"),
        ([tensor("a", [-1], [1])], "inputs.a: expected a shape [rows] or [rows, columns], got [-1]"),
        ([tensor("a", ["1"], [1])], "inputs.a: expected a shape [rows] or [rows, columns], got ['1']"),
        ([tensor("a", [2], [[1], 2])], "inputs.a: expected lists that are nested alike, got [[1], 2]"),
        ([tensor("a", [1], "x")], "inputs.a: expected a list of values, got 'x'"),
        ([tensor("a", [1], [1]), tensor("a", [1], [1])], "inputs.a: expected columns of different names, got 'a'"),
        ([tensor("a", [1, 2], [1, 2], names=["b"])], "inputs.a: expected 2 names, one for each column, got ['b']"),
        ([tensor("a", [1, 1], [1], names=[5])], "inputs.a.parameters.names: expected a list of names, got [5]"),
        ([{"name": "a"}], "inputs[0]: expected a tensor with name, shape and datatype, got ['name']"),
        ([tensor("a", [1], [5], "BYTES", content_type="base64")], "inputs.a: expected text in base64, got 5"),
    ],
)  # fmt: skip
def test_a_tensor_that_is_not_what_it_says_is_a_dead_letter(tensors: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(InvalidRecordError) as caught:
        rows(*tensors)
    assert (caught.value.reason, str(caught.value)) == ("wrong_tensor", said)


def raw(*tensors: tuple[str, list[int], bytes]) -> tuple[bytes, list[tuple[str, bytes | None]]]:
    """A request with the extension for binary data, and its headers."""
    said = [
        {"name": f"t{i}", "shape": shape, "datatype": kind, "parameters": {"binary_data_size": len(data)}}
        for i, (kind, shape, data) in enumerate(tensors)
    ]
    text = json.dumps({"inputs": said}).encode()
    headers = kserve("request", **{"Inference-Header-Content-Length": str(len(text))})
    return text + b"".join(data for *_, data in tensors), headers


@pytest.mark.parametrize(
    ("kind", "data", "values"),
    [
        ("FP16", b"\x00\x3c\x00\xc0", [1.0, -2.0]),
        ("FP16", b"\x00\x7e\x00\x7c", [None, float("inf")]),
        ("BF16", b"\x80\x3f\x00\xc0", [1.0, -2.0]),
        ("FP32", struct.pack("<2f", 0.5, float("nan")), [0.5, None]),
        ("FP64", struct.pack("<2d", 0.1, 1e300), [0.1, 1e300]),
        ("INT8", b"\xff\x01", [-1, 1]),
        ("UINT8", b"\xff\x01", [255, 1]),
        ("INT16", struct.pack("<2h", -2, 2), [-2, 2]),
        ("UINT32", struct.pack("<2I", 0, 2**32 - 1), [0, 2**32 - 1]),
        ("INT64", struct.pack("<2q", -(2**63), 1), [-(2**63), 1]),
        ("UINT64", struct.pack("<2Q", 2**64 - 1, 1), [2**64 - 1, 1]),
        ("BOOL", b"\x01\x00", [True, False]),
        ("BYTES", b"\x01\0\0\0x\x02\0\0\0\xc3\xa4", ["x", "ä"]),
    ],
)
def test_the_bytes_of_a_tensor(kind: str, data: bytes, values: list[Any]) -> None:
    value, headers = raw(("FP64", [2], struct.pack("<2d", 7, 8)), (kind, [2], data))
    found = [one.x for one in FORMAT.decode_now(record(value, headers))]
    assert found == [{"t0": 7.0, "t1": values[0]}, {"t0": 8.0, "t1": values[1]}]
    assert all(type(one["t1"]) is type(value) for one, value in zip(found, values, strict=True) if one)


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("FP32", b"\0\0\0", "inputs.t0: expected whole values of FP32"),
        ("FP31", b"", "inputs.t0: expected one of BOOL, INT8"),
        ("BYTES", b"\x05\0\0\0x", "inputs.t0: expected texts with their lengths in front"),
        ("BYTES", b"\x05\0", "inputs.t0: expected texts with their lengths in front"),
    ],
)
def test_bytes_that_are_no_tensor_are_a_dead_letter(kind: str, data: bytes, said: str) -> None:
    error = refusal(*raw((kind, [1], data)))
    assert error.reason == "wrong_tensor"
    assert str(error).startswith(said)


def test_bytes_that_are_not_there_are_a_dead_letter() -> None:
    value, headers = raw(("INT8", [2], b"\x01\x02"))
    assert str(refusal(value[:-1], headers)) == "inputs.t0: expected 2 bytes behind the JSON, got 1"
    headers[-1] = (headers[-1][0], b"many")
    assert refusal(value, headers).reason == "not_inference"


@pytest.mark.parametrize(
    ("message", "kind", "reason", "field"),
    [
        ({"error": "model is not ready"}, "response", "not_inference", "value"),
        ({"inputs": {"a": 1}}, "request", "not_inference", "value"),
        ([1], "request", "wrong_type", "value"),
        (b'{"inputs": [}', "request", "invalid_json", "value"),
        (b'{"instances": [[1, Infinity]]}', "request", "not_finite", "instances[0][1]"),
        ({"instances": [[[1]]]}, "request", "wrong_tensor", "instances[0]"),
        ({"inputs": [5]}, "request", "wrong_type", "inputs[0]"),
        ({"instances": [1]}, "feedback", "not_inference", "ce_type"),
    ],
)
def test_what_is_no_message_is_a_dead_letter(message: Any, kind: str, reason: str, field: str) -> None:
    value = message if isinstance(message, bytes) else json.dumps(message).encode()
    error = refusal(value, kserve(kind))
    assert (error.reason, error.field) == (reason, field)


def test_the_rows_of_a_message_are_bounded() -> None:
    many = [1] * (MOST_ROWS + 1)
    for message in ({"instances": many}, {"inputs": [tensor("a", [len(many)], many)]}):
        with pytest.raises(InvalidRecordError) as caught:
            decoded(message)
        assert caught.value.reason == "too_large"
        assert str(caught.value).endswith(": expected at most 100000 rows, got 100001")


def test_nan_is_null() -> None:
    assert rows() == []
    assert [one.x for one in decoded(b'{"instances": [[NaN, 1]]}')] == [{"instances_0": None, "instances_1": 1}]


def test_a_record_without_a_value_is_none() -> None:
    assert FORMAT.decode_now(record(None, kserve("request"))) == []


@given(st.recursive(st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(
    ["inputs", "a", "FP64", "BYTES"]), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["inputs", "instances", "outputs", "name", "shape", "datatype", "data", "parameters", "names",
                     "binary_data_size", "content_type"]), inner, max_size=6), max_leaves=12))  # fmt: skip
def test_any_json_is_objects_or_a_dead_letter(message: Any) -> None:
    try:
        found = FORMAT.decode_now(record(json.dumps(message).encode(), topic="t.inputs"))
    except InvalidRecordError:
        return
    assert all(isinstance(one.x, dict) for one in found)

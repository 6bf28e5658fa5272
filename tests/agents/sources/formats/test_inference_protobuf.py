"""Version 2 in Protobuf, as Seldon Core 2 has it on its topics; written by what protoc generates."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.errors import ConfigError
from attributary_agents.sources.formats import inference
from attributary_agents.sources.formats.inference import OpenInferenceFormat
from attributary_topics import InvalidRecordError
from tests.agents.sources.formats.fake_registry import record
from tests.agents.sources.formats.generated import generated

FORMAT = OpenInferenceFormat()

# The messages of https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/open_inference_grpc.proto
PROTO = """
syntax = "proto3";
package inference;
message ModelInferRequest {
  message InferInputTensor {
    string name = 1; string datatype = 2; repeated int64 shape = 3;
    map<string, InferParameter> parameters = 4; InferTensorContents contents = 5;
  }
  message InferRequestedOutputTensor { string name = 1; map<string, InferParameter> parameters = 2; }
  string model_name = 1; string model_version = 2; string id = 3; map<string, InferParameter> parameters = 4;
  repeated InferInputTensor inputs = 5; repeated InferRequestedOutputTensor outputs = 6;
  repeated bytes raw_input_contents = 7;
}
message ModelInferResponse {
  message InferOutputTensor {
    string name = 1; string datatype = 2; repeated int64 shape = 3;
    map<string, InferParameter> parameters = 4; InferTensorContents contents = 5;
  }
  string model_name = 1; string model_version = 2; string id = 3; map<string, InferParameter> parameters = 4;
  repeated InferOutputTensor outputs = 5; repeated bytes raw_output_contents = 6;
}
message InferParameter {
  oneof parameter_choice { bool bool_param = 1; int64 int64_param = 2; string string_param = 3; }
}
message InferTensorContents {
  repeated bool bool_contents = 1; repeated int32 int_contents = 2; repeated int64 int64_contents = 3;
  repeated uint32 uint_contents = 4; repeated uint64 uint64_contents = 5; repeated float fp32_contents = 6;
  repeated double fp64_contents = 7; repeated bytes bytes_contents = 8;
}
"""


@pytest.fixture(scope="module")
def v2(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return generated(tmp_path_factory.mktemp("proto"), {"inference_of_tests.proto": PROTO})


def request(v2: ModuleType, **tensors: tuple[str, list[int], dict[str, Any]]) -> Any:
    message = v2.ModelInferRequest(model_name="iris_1", model_version="1")
    for name, (datatype, shape, contents) in tensors.items():
        message.inputs.add(name=name, datatype=datatype, shape=shape).contents.MergeFrom(
            v2.InferTensorContents(**contents)
        )
    return message


def rows(message: Any) -> list[dict[str, Any] | None]:
    return [one.x for one in FORMAT.decode_now(record(message.SerializeToString(), topic="t.inputs"))]


def test_what_seldon_core_2_has_on_the_topics_of_a_model(v2: ModuleType) -> None:
    # https://docs.seldon.ai/seldon-core-2/v2.9/user-guide/examples/pipeline-to-pipeline: values in both ways at once
    numbers = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32]
    sent = v2.ModelInferRequest()
    for name, values in (("INPUT0", numbers), ("INPUT1", [0] * 16)):
        sent.inputs.add(name=name, datatype="INT32", shape=[1, 16]).contents.int_contents.extend(values)
        sent.raw_input_contents.append(struct.pack("<16i", *values))
    headers = [("x-request-id", b"test-id2"), ("pipeline", b"tfsimple-extended")]
    topic = "seldon.default.model.tfsimple2"
    asked = record(sent.SerializeToString(), headers, topic=f"{topic}.inputs", key=b"test-id2")
    (found,) = FORMAT.decode_now(asked)
    assert (found.kind, found.id, found.time) == ("request", "test-id2#0", None)
    assert found.x == {f"INPUT0_{i}": n for i, n in enumerate(numbers)} | {f"INPUT1_{i}": 0 for i in range(16)}
    assert found.value == {"inputs": found.x, "id": "test-id2", "row": 0, "kind": "request"}

    answer = v2.ModelInferResponse(model_name="tfsimple2_1", model_version="1")
    answer.outputs.add(name="OUTPUT0", datatype="INT32", shape=[1, 16]).contents.int_contents.extend(numbers)
    (found,) = FORMAT.decode_now(record(answer.SerializeToString(), headers, topic=f"{topic}.outputs", key=b"test-id2"))
    assert (found.kind, found.id, found.x) == ("response", "test-id2#0", None)
    assert found.value["outputs"] == {f"OUTPUT0_{i}": n for i, n in enumerate(numbers)}
    assert (found.value["model_name"], found.value["model_version"]) == ("tfsimple2_1", "1")


@pytest.mark.parametrize(
    ("datatype", "contents", "values"),
    [
        ("BOOL", {"bool_contents": [True, False]}, [True, False]),
        ("INT8", {"int_contents": [-1, 1]}, [-1, 1]),
        ("INT64", {"int64_contents": [2**53 + 1, -1]}, [2**53 + 1, -1]),
        ("UINT16", {"uint_contents": [1, 2]}, [1, 2]),
        ("UINT64", {"uint64_contents": [2**64 - 1, 0]}, [2**64 - 1, 0]),
        ("FP32", {"fp32_contents": [0.5, float("nan")]}, [0.5, None]),
        ("FP64", {"fp64_contents": [0.1, 1e300]}, [0.1, 1e300]),
        ("BYTES", {"bytes_contents": [b"x", b"\xff"]}, ["x", b"\xff"]),
    ],
)
def test_each_data_type(v2: ModuleType, datatype: str, contents: dict[str, Any], values: list[Any]) -> None:
    assert rows(request(v2, a=(datatype, [2], contents))) == [{"a": value} for value in values]


def test_half_precision_is_raw(v2: ModuleType) -> None:
    message = request(v2, a=("FP16", [2, 1], {}))
    message.raw_input_contents.append(b"\x00\x3c\x00\xc0")
    assert rows(message) == [{"a": 1.0}, {"a": -2.0}]


def test_names_of_columns_and_parameters(v2: ModuleType) -> None:
    message = request(v2, a=("FP64", [1, 2], {"fp64_contents": [1.5, 2.5]}))
    message.inputs[0].parameters["names"].string_param = "age,balance"
    message.parameters["tier"].int64_param = 3
    (found,) = FORMAT.decode_now(record(message.SerializeToString(), topic="t.inputs"))
    assert found.x == {"age": 1.5, "balance": 2.5}
    assert found.value["parameters"] == {"tier": 3}
    assert found.id is None


def test_an_event_says_what_the_message_is(v2: ModuleType) -> None:
    answer = v2.ModelInferResponse(id="other")
    answer.outputs.add(name="score", datatype="FP64", shape=[1]).contents.fp64_contents.append(0.25)
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"q"),
        ("ce_type", b"org.kubeflow.serving.inference.response"),
        ("content-type", b"application/x-protobuf"),
    ]
    (found,) = FORMAT.decode_now(record(answer.SerializeToString(), headers))
    assert (found.id, found.kind, found.value["outputs"]) == ("q#0", "response", {"score": 0.25})


def refusal(value: bytes, topic: str = "t.inputs") -> InvalidRecordError:
    with pytest.raises(InvalidRecordError) as caught:
        FORMAT.decode_now(record(value, topic=topic))
    return caught.value


def test_what_is_not_said_or_not_so_is_a_dead_letter(v2: ModuleType) -> None:
    message = request(v2, a=("FP64", [2], {"fp64_contents": [1.0]}))
    assert refusal(message.SerializeToString(), "t").reason == "not_inference"
    error = refusal(message.SerializeToString())
    assert (error.reason, error.field) == ("wrong_tensor", "inputs.a")
    assert refusal(request(v2, a=("FP16", [1], {})).SerializeToString()).reason == "wrong_tensor"
    assert refusal(request(v2, a=("FP32", [1], {"fp64_contents": [1.0]})).SerializeToString()).reason == "wrong_tensor"
    message.raw_input_contents.extend([b"", b""])
    assert str(refusal(message.SerializeToString())) == "inputs: expected raw contents of 1 tensors, got 2"
    error = refusal(b"\x0a\x7f")
    assert (error.reason, str(error)) == (
        "not_inference",
        "value: expected a request in Protobuf or JSON, got b'\\n\\x7f'",
    )


def test_a_message_that_begins_as_json_does_is_read(v2: ModuleType) -> None:
    message = request(v2, a=("FP64", [1], {"fp64_contents": [1.0]}))
    message.model_name = "m" * ord("{")  # its length is the second byte, and the first one is a line end
    assert message.SerializeToString()[:2] == b"\n{"
    assert rows(message) == [{"a": 1.0}]


def test_without_protobuf_the_extra_is_named(v2: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "find_spec", lambda _name: None)
    with pytest.raises(ConfigError) as caught:
        FORMAT.decode_now(record(b"\x0a\x01m", topic="t.inputs"))
    assert str(caught.value) == (
        "format open-inference needs protobuf for Protobuf: pip install 'attributary[protobuf]'"
    )
    assert FORMAT.decode_now(record(b'{"instances": [1]}')) != []


@given(st.binary(max_size=60))
def test_any_bytes_are_objects_or_a_dead_letter(value: bytes) -> None:
    try:
        found = FORMAT.decode_now(record(b"\x2a" + value, topic="t.inputs"))
    except InvalidRecordError:
        return
    assert all(isinstance(one.x, dict) for one in found)

"""Requests are those of the protocol, written out by hand; answers that are not what was asked for are told apart."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from attributary_agents.config.served import ServedConfig, is_address_allowed
from attributary_agents.models.artefacts.served.errors import ServedError
from attributary_agents.models.artefacts.served.model import ServedModel
from attributary_agents.models.artefacts.served.protocol import Protocol
from attributary_agents.models.artefacts.served.served import Served

URL = "http://h:8080/v2/models/m"


def protocol(**given: Any) -> Protocol:
    config = ServedConfig.model_validate({"served": URL, **given})
    config.take_features(None)
    return Protocol(Served.of(config))


def asked(spoken: Protocol, *rows: dict[str, Any]) -> Any:
    return json.loads(spoken.request([spoken.values(row) for row in rows]))


def test_one_tensor_of_all_features_in_their_order() -> None:
    spoken = protocol(input="x", output="probabilities", features=["b", "a"], classes=["no", "yes"])
    assert asked(spoken, {"a": 1, "b": 2.5}, {"b": -0.0, "a": True}) == {
        "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP64", "data": [2.5, 1.0, -0.0, 1.0]}],
        "outputs": [{"name": "probabilities"}],
    }
    assert spoken.served.address == f"{URL}/infer"


def test_a_tensor_for_each_feature_text_and_whole_numbers_among_them() -> None:
    spoken = protocol(features={"job": "BYTES", "age": "INT64", "owns": "BOOL", "rate": "FP32"})
    assert asked(spoken, {"rate": 0.1, "job": "admin", "age": 41.0, "owns": 1, "more": 9}) == {
        "inputs": [
            {"name": "job", "shape": [1, 1], "datatype": "BYTES", "data": ["admin"]},
            {"name": "age", "shape": [1, 1], "datatype": "INT64", "data": [41]},
            {"name": "owns", "shape": [1, 1], "datatype": "BOOL", "data": [True]},
            {"name": "rate", "shape": [1, 1], "datatype": "FP32", "data": [0.1]},
        ]
    }


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("FP64", None, "feature 'a' is missing"),
        ("FP64", float("nan"), "feature 'a' is missing"),
        ("FP64", "x", "feature 'a' is text"),
        ("INT64", 0.5, "feature 'a' is no whole number"),
        ("BOOL", 2, "feature 'a' is neither true nor false"),
        ("BYTES", None, "feature 'a' is missing"),
        ("BYTES", [1], "feature 'a' is no number, text or boolean"),
    ],
)
def test_a_value_that_no_tensor_of_its_type_holds_is_named(kind: str, value: Any, said: str) -> None:
    with pytest.raises(ServedError, match=said):
        protocol(features={"a": kind}).values({"a": value})


def test_a_template_holds_rows_as_objects_or_as_arrays_and_the_names() -> None:
    assert asked(protocol(protocol="json"), {"b": 1, "a": None}) == {"instances": [{"b": 1, "a": None}]}
    split = {"dataframe_split": {"columns": "$features", "data": "$arrays"}, "more": [1, "$rows"]}
    spoken = protocol(protocol="json", request=split, features=["a", "b"])
    assert asked(spoken, {"b": "x", "a": 2}, {"a": 3}) == {
        "dataframe_split": {"columns": ["a", "b"], "data": [[2, "x"], [3, None]]},
        "more": [1, [{"a": 2, "b": "x"}, {"a": 3, "b": None}]],
    }
    assert spoken.served.address == URL


@pytest.mark.parametrize(
    ("given", "data", "shape", "found"),
    [
        (
            {"classes": [0, 1, 2]},
            [0.1, 0.2, 0.7, 1, 0, 0],
            [2, 3],
            [{0: 0.1, 1: 0.2, 2: 0.7}, {0: 1.0, 1: 0.0, 2: 0.0}],
        ),
        ({"classes": ["n", "y"]}, [[0.25], [1]], [2, 1], [{"n": 0.75, "y": 0.25}, {"n": 0.0, "y": 1.0}]),
        ({}, [1, 2.5], [2], [1.0, 2.5]),
        ({"predicts": "label"}, ["a", "b"], [2, 1], ["a", "b"]),
        ({"predicts": "label"}, [3, True], [2], [3, True]),
    ],
)
def test_tensors_become_predictions(given: Any, data: Any, shape: Any, found: Any) -> None:
    answer = {"outputs": [{"name": "p", "shape": shape, "datatype": "FP64", "data": data}]}
    assert protocol(features=["a"], **given).predictions(json.dumps(answer).encode(), 2) == found


@pytest.mark.parametrize("depth", [1, 1020])
def test_values_are_found_however_deep_they_are_nested(depth: int) -> None:
    answer = b'{"outputs": [{"name": "p", "data": %s1.5, 2.5%s}]}' % (b"[" * depth, b"]" * depth)
    assert protocol(features=["a"]).predictions(answer, 2) == [1.5, 2.5]


def test_numbers_come_back_to_the_last_bit() -> None:
    numbers = [0.1 + 0.2, 1 / 3, 5e-324, 1.7976931348623157e308]
    answer = json.dumps({"outputs": [{"name": "p", "data": numbers}]}).encode()
    assert protocol(features=["a"]).predictions(answer, 4) == numbers
    spoken = protocol(features=["a"], input="x")
    assert asked(spoken, *({"a": one} for one in numbers))["inputs"][0]["data"] == numbers


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>", "no JSON"),
        (b'{"outputs": [{"name": "p", "data": [NaN, 1]}]}', "no JSON"),
        (b"[]", "no `outputs`"),
        (b'{"outputs": [{"name": "q", "data": [1, 2]}]}', "has the tensors 'q', not 'p'"),
        (b'{"outputs": [{"name": "p", "data": [1, 2, 3]}]}', "a tensor of 3 values for 2 rows"),
        (b'{"outputs": [{"name": "p", "data": []}]}', "a tensor of 0 values for 2 rows"),
    ],
)
def test_an_answer_that_is_not_what_was_asked_for_is_refused_as_a_whole(answer: bytes, said: str) -> None:
    with pytest.raises(ServedError, match=said):
        protocol(features=["a"], output="p").predictions(answer, 2)


@pytest.mark.parametrize(
    ("given", "row", "said"),
    [({}, None, "it answers no number"), ({}, "x", "it answers no number"), ({}, True, "it answers no number"),
     ({"classes": [0, 1]}, [0.5, None], "a probability is no number"),
     ({"classes": [0, 1]}, [1, 2, 3], "it answers 3 probabilities for 2 classes"),
     ({"predicts": "label"}, None, "it answers no label"), ({"predicts": "label"}, {}, "it answers no label")],
)  # fmt: skip
def test_a_row_without_a_prediction_is_refused(given: Any, row: Any, said: str) -> None:
    good = {"classes": [0.5, 0.5], "predicts": "a"}.get(next(iter(given), ""), 1.0)
    spoken = protocol(protocol="json", **given)
    assert len(spoken.predictions(json.dumps({"predictions": [good]}).encode(), 1)) == 1
    with pytest.raises(ServedError, match=f"^{said}$"):
        spoken.predictions(json.dumps({"predictions": [good, row]}).encode(), 2)


def test_probabilities_by_name_and_an_answer_elsewhere() -> None:
    spoken = protocol(protocol="json", answer="out[].p", classes=["n", "y"])
    answer = {"out": [{"p": {"y": 0.9, "n": 0.1}}]}
    assert spoken.predictions(json.dumps(answer).encode(), 1) == [{"n": 0.1, "y": 0.9}]
    with pytest.raises(ServedError, match=r"no 2 predictions at 'out\[\].p', but 1 of them"):
        spoken.predictions(json.dumps(answer).encode(), 2)
    of_truth = protocol(protocol="json", classes=[False, True])
    for no, yes in (("false", "true"), ("False", "True")):  # of JavaScript or Go, and of Python's str
        body = json.dumps({"predictions": [{no: 0.1, yes: 0.9}]}).encode()
        assert of_truth.predictions(body, 1) == [{False: 0.1, True: 0.9}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"served": "ftp://h"}, "expected http://HOST:PORT/PATH"),
        ({"served": "http://u:p@h"}, "names a user"),
        ({"served": "http://h/m?x=1"}, "without"),
        ({"predicts": "probabilities"}, "needs `classes`"),
        ({"classes": ["a"]}, "at least two labels"),
        ({"classes": ["a", "b"], "predicts": "label"}, "labels of probabilities"),
        ({"request": {"a": "$rows"}}, "not of `protocol: v2`"),
        ({"protocol": "json", "input": "x"}, "not of `protocol: json`"),
        ({"protocol": "json", "request": {"a": "b"}}, r"\$rows or \$arrays"),
        ({"protocol": "json", "answer": "a["}, "no JMESPath"),
        ({"ca_file": "ca.pem"}, "https only"),
        ({"token_env": "A", "token_file": "b"}, "give one of them"),
        ({"headers": {"a b": "c"}}, "'a b' is no name of a header"),
        ({"headers": {"a": "c\r\nd"}}, "the value of a holds more than printable ASCII"),
        ({"headers": {"X-Team": "Müller"}}, "the value of X-Team holds more than printable ASCII"),
        ({"features": ["a", "a"]}, "named once"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ServedConfig.model_validate({"served": URL, **given})


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("http://fraud/v2/models/a", True),
        ("http://fraud/v2/models", True),
        ("http://fraud:80/v2/models/a", True),
        ("http://fraud/v2/models-of-others/a", False),
        ("http://fraud/v2/models/../admin", False),
        ("http://fraud/v2/models/%2e%2e/admin", False),
        ("https://fraud/v2/models/a", False),
        ("http://fraud:8080/v2/models/a", False),
        ("http://fraud.evil.example/v2/models/a", False),
        ("http://fraud@evil.example/v2/models/a", False),
        ("http://evil.example/http://fraud/v2/models/a", False),
        ("http://fraud\\@evil.example/v2/models/a", False),
        ("http://169.254.169.254/latest/meta-data", False),
    ],
)
def test_only_addresses_below_one_that_is_allowed_may_be_asked(address: str, is_allowed: bool) -> None:
    assert is_address_allowed(address, ["river.", "mine:build", "http://fraud/v2/models"]) is is_allowed


def test_a_pickle_holds_what_the_model_is_and_nothing_of_how_it_is_asked() -> None:
    config = ServedConfig.model_validate({"served": URL, "features": ["a"], "token_env": "SECRET", "retries": 9})
    model = ServedModel(Served.of(config))
    data = pickle.dumps(model)
    assert b"SECRET" not in data
    assert pickle.loads(data).served == model.served

"""Each fault of a control record is told apart; what is good comes out in one form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import REASONS, Deployment, InvalidRecordError, decode_deployment

KEY = b"credit"
HASH = "0123456789abcdef" * 4
BAYES = {"class": "river.naive_bayes.GaussianNB"}


def decoded(**value):
    return decode_deployment(KEY, json.dumps({"version": "2", **value}).encode())


def decoded_or_fault(key, value):
    """Whatever else is raised fails the test."""
    try:
        return decode_deployment(key, value)
    except InvalidRecordError as error:
        return error


def refused(value, key=KEY, **options):
    encoded = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    with pytest.raises(InvalidRecordError) as caught:
        decode_deployment(key, encoded, **options)
    assert caught.value.reason in REASONS
    assert len(str(caught.value)) < 500
    return caught.value.reason, caught.value.field


NESTED = {"a": [1, {"b": None}]}


@pytest.mark.parametrize(
    ("value", "spec"),
    [
        ({"model": BAYES}, {"model": {**BAYES, "params": {}}}),
        (
            {"model": {**BAYES, "params": {"a": [1, {"b": None}]}}},
            {"model": {**BAYES, "params": {"a": [1, {"b": None}]}}},
        ),
        ({"model": [BAYES, BAYES]}, {"model": [{**BAYES, "params": {}}] * 2}),
        ({"factory": "my.module:make"}, {"factory": "my.module:make"}),
        ({"model": {"factory": "m:f", "params": {}}}, {"factory": "m:f"}),
        ({"model": {"factory": "m:f", "params": {"depth": 6}}}, {"factory": "m:f", "params": {"depth": 6}}),
        ({"artefact": "a/credit 2.pkl", "sha256": HASH}, {"artefact": "a/credit 2.pkl", "sha256": HASH}),
        ({"model_id": "credit", "factory": "m:f"}, {"factory": "m:f"}),
    ],
)
def test_what_is_good_comes_out_in_one_form(value, spec):
    assert decoded(**value) == Deployment("credit", "2", spec)


FAULTS = [
    ("empty_value", "value", None),
    ("empty_value", "value", b""),
    ("invalid_json", "value", b"{version: 2}"),
    ("not_finite", "model.params.a", b'{"version": "2", "model": {"class": "a.B", "params": {"a": NaN}}}'),
    ("wrong_type", "value", []),
    ("wrong_type", "value", "text"),
    ("wrong_type", "value", {"version": "2"}),
    ("wrong_type", "value", {"version": "2", "model": BAYES, "factory": "m:f"}),
    ("wrong_type", "model_id", {"version": "2", "model": BAYES, "model_id": "debit"}),
    ("wrong_type", "model_id", {"version": "2", "model": BAYES, "model_id": None}),
    ("wrong_type", "learn", {"version": "2", "model": BAYES, "learn": True}),
    ("wrong_type", "version", {"model": BAYES}),
    ("wrong_type", "version", {"version": 2, "model": BAYES}),
    ("wrong_type", "version", {"version": "", "model": BAYES}),
    ("wrong_type", "version", {"version": "v" * 201, "model": BAYES}),
    ("wrong_type", "version", {"version": "2\n", "model": BAYES}),
    ("wrong_type", "model", {"version": "2", "model": []}),
    ("wrong_type", "model", {"version": "2", "model": "river.naive_bayes.GaussianNB"}),
    ("wrong_type", "model.class", {"version": "2", "model": {}}),
    ("wrong_type", "model.class", {"version": "2", "model": {"class": ["a"]}}),
    ("wrong_type", "model.class", {"version": "2", "model": {"class": "a:b"}}),
    ("wrong_type", "model.parms", {"version": "2", "model": {**BAYES, "parms": {}}}),
    ("wrong_type", "model.params", {"version": "2", "model": {**BAYES, "params": [1]}}),
    ("wrong_type", "model[1]", {"version": "2", "model": [BAYES, 3]}),
    ("wrong_type", "model[1].class", {"version": "2", "model": [BAYES, {"params": {}}]}),
    ("wrong_type", "factory", {"version": "2", "factory": "module.function"}),
    ("wrong_type", "factory", {"version": "2", "factory": None}),
    ("wrong_type", "model.factory", {"version": "2", "model": {"factory": "m.f"}}),
    ("wrong_type", "model.params", {"version": "2", "model": {"factory": "m:f", "params": []}}),
    ("wrong_type", "model.class", {"version": "2", "model": {"factory": "m:f", "class": "a.B"}}),
    ("wrong_type", "artefact", {"version": "2", "artefact": "", "sha256": HASH}),
    ("wrong_type", "artefact", {"version": "2", "artefact": "a\0b", "sha256": HASH}),
    ("wrong_type", "sha256", {"version": "2", "artefact": "a.pkl"}),
    ("wrong_type", "sha256", {"version": "2", "artefact": "a.pkl", "sha256": HASH.upper()}),
    ("wrong_type", "sha256", {"version": "2", "artefact": "a.pkl", "sha256": HASH[1:]}),
    ("wrong_type", "sha256", {"version": "2", "artefact": "a.pkl", "sha256": HASH + "\n"}),
    ("wrong_type", "sha256", {"version": "2", "model": BAYES, "sha256": HASH}),
]


@pytest.mark.parametrize(("reason", "field", "value"), FAULTS)
def test_a_fault_is_named_with_its_field(reason, field, value):
    assert refused(value) == (reason, field)


def test_the_key_is_checked_as_of_observations():
    good = {"version": "2", "model": BAYES}
    assert refused(good, key=None) == ("missing_model_id", "key")
    assert refused(good, key=b"\xff") == ("invalid_model_id", "key")


def test_a_value_over_the_limit_is_not_even_parsed():
    assert refused(b"[" * 1001, max_bytes=1000) == ("too_large", "value")


@pytest.mark.parametrize("depth", [32, 500, 1000])
def test_deep_arguments_are_a_fault_of_the_record(depth):
    value = b'{"version": "2", "model": {"class": "a.B", "params": {"a": ' + b"[" * depth + b"]" * depth + b"}}}"
    assert refused(value) == ("wrong_type", "model.params")


def test_arguments_as_deep_as_models_need_are_taken():
    inner = BAYES
    for _ in range(10):
        inner = {"class": "a.B", "params": {"model": inner}}
    assert decoded(model=inner).spec["model"]["params"]["model"] == inner["params"]["model"]


@given(st.none() | st.binary(max_size=200), st.none() | st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(key, value):
    outcome = decoded_or_fault(key, value)
    assert isinstance(outcome, Deployment) or outcome.reason in REASONS


NAMES = st.sampled_from(["class", "params", "a"])
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["version", "model", "factory", "artefact", "sha256", "x"]), plain, max_size=4))
def test_random_json_raises_nothing_else_and_lets_nothing_bad_through(value):
    outcome = decoded_or_fault(KEY, json.dumps(value).encode())
    if isinstance(outcome, InvalidRecordError):
        assert outcome.reason in REASONS
        return
    assert isinstance(outcome.version, str)
    assert set(outcome.spec) in ({"model"}, {"factory"}, {"factory", "params"}, {"artefact", "sha256"})

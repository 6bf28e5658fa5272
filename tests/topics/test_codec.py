"""Events out: plain JSON, never NaN, the same bytes for the same data."""

import json
import math
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import (
    ChangeEvent,
    DetectorSpec,
    FeatureChange,
    FeatureImportance,
    ImportanceComparison,
    ImportanceEvent,
    Source,
    decode_json,
    encode_json,
)

SOURCE = Source("attributary.observations.v1", 3, 17)


FEATURE = FeatureChange(
    before=0.1,
    crossed=0.05,
    after=None,
    delta=-0.1,
    model_part=-0.05,
    data_part=-0.05,
    before_std_error=0.01,
    crossed_std_error=0.01,
    after_std_error=None,
    delta_std_error=0.01,
    model_part_std_error=None,
    data_part_std_error=0.01,
    before_rank=1,
    after_rank=None,
    p_value=0.001,
    significant=True,
)


def importance_event(**changes):
    values = {
        "model_id": "credit",
        "model_version": "1",
        "explainer": "sage",
        "removal": "interventional",
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
        "alpha": 0.001,
        "observation": 500,
        "n_observations": 499,
        "model_loss": 0.25,
        "baseline_loss": None,
        "discrepancy": 0.0,
        "shift": None,
        "ndcg": 1.0,
        "reference_id": None,
        "trigger": "interval",
        "features": {
            "age": FeatureImportance(0.125, None, None, 0.75, 1),
            "größe": FeatureImportance(-0.5, 0.01, 0.02, 0.0, 2),
        },
        "source": SOURCE,
    }
    return ImportanceEvent(**{**values, **changes})


def change_event(**changes):
    values = {
        "model_id": "credit",
        "model_version_before": "1",
        "model_version": "2",
        "kind": "model",
        "route": "detector",
        "observation": 1559,
        "detected_at": 1260,
        "reference_at": 300,
        "detector": DetectorSpec("adwin", {"delta": 0.025}, "zero_one"),
        "window": 300,
        "discrepancy": 0.75,
        "threshold": 0.3,
        "n_discrepancy": 600,
        "distance": "label",
        "cause": "both",
        "importances": {
            "pfi": ImportanceComparison(
                "squared", "unit of the target, squared", None, 0.2, 0.9, 0.1, 0.4, None, 0.02, {"age": FEATURE}
            )
        },
        "sentence": "credit changed",
        "source": SOURCE,
    }
    return ChangeEvent(**{**values, **changes})


@pytest.mark.parametrize("event", [importance_event(), change_event(), change_event(detector=None, importances={})])
def test_an_event_is_a_json_object_with_its_fields_by_name(event):
    encoded = encode_json(event)
    assert json.loads(encoded) == asdict(event)
    assert decode_json(encoded) == asdict(event)
    assert "NaN" not in encoded.decode()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda v: importance_event(model_loss=v), "model_loss"),
        (
            lambda v: importance_event(features={"age": FeatureImportance(0.1, v, 0.1, 1.0, 1)}),
            "features.age.std_error",
        ),
        (lambda v: change_event(detector=DetectorSpec("adwin", {"delta": v}, "loss")), "detector.params.delta"),
        (lambda v: {"a": [1.0, {"b": (2.0, v)}]}, "a[1].b[1]"),
        (lambda v: v, "value"),
    ],
)
def test_a_number_that_is_not_finite_is_refused_and_the_field_is_named(make, field, value):
    with pytest.raises(ValueError, match="must be finite or null") as caught:
        encode_json(make(value))
    assert str(caught.value).startswith(f"{field} must be finite or null, got {value!r}")


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back_as_it_was(data):
    assert decode_json(encode_json(data)) == data
    assert encode_json(decode_json(encode_json(data))) == encode_json(data)


def test_the_order_of_a_dict_is_kept_because_it_says_which_feature_comes_first():
    assert encode_json({"b": 1.0, "a": 2.0}) == b'{"b":1.0,"a":2.0}'
    assert encode_json({"a": 2.0, "b": 1.0}) == b'{"a":2.0,"b":1.0}'


def test_a_nested_dataclass_is_searched_and_encoded():
    @dataclass
    class Inner:
        value: float

    @dataclass
    class Outer:
        inner: list[Inner]

    assert encode_json(Outer([Inner(1.5)])) == b'{"inner":[{"value":1.5}]}'
    with pytest.raises(ValueError, match=r"^inner\[0\]\.value must be finite"):
        encode_json(Outer([Inner(math.nan)]))

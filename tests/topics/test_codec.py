"""Events out: plain JSON, never NaN, the same bytes for the same data."""

import json
import math
from dataclasses import asdict, dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import (
    ChangeDetails,
    ChangeLosses,
    DetectorSpec,
    FeatureChange,
    FeatureImportance,
    ImportanceComparison,
    ImportanceEvent,
    IncidentEffect,
    IncidentEvent,
    IncidentEvidence,
    IncidentFeature,
    IncidentOnset,
    LossDifference,
    LossEstimate,
    MeanEstimate,
    OnsetEstimate,
    QualityFigure,
    Source,
    SourceOrigin,
    ValueFigures,
    decode_json,
    encode_json,
)

SOURCE = Source("attributary.observations.v1", 3, 17)


FEATURE = FeatureChange(
    before=0.1,
    after=None,
    delta=-0.1,
    before_std_error=0.01,
    after_std_error=None,
    delta_std_error=0.01,
    before_rank=1,
    after_rank=None,
    p_value=0.001,
    significant=True,
)
DETECTOR = DetectorSpec("adwin", {"delta": 0.025}, "zero_one")
NOW = LossEstimate(0.4, 0.3, 0.5, 300)
LOSSES = ChangeLosses("brier", "squared probability", 2.0, None, NOW, NOW, None, LossDifference(0.0, None, None))


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
        "quality": {"accuracy": QualityFigure(0.9, None)},
        "discrepancy": 0.0,
        "shift": None,
        "ndcg": 1.0,
        "reference_id": None,
        "trigger": "interval",
        "stale": False,
        "features": {
            "age": FeatureImportance(0.125, None, None, 0.75, 1),
            "größe": FeatureImportance(-0.5, 0.01, 0.02, 0.0, 2),
        },
        "source": SOURCE,
    }
    return ImportanceEvent(**{**values, **changes})


EXPLANATION = ChangeDetails(
    model_version_before="1",
    model_version="2",
    verdict="followed",
    route="detector",
    observation=1559,
    detected_at=1260,
    reference_at=300,
    onset=OnsetEstimate(1250, None, 1255),
    pattern=None,
    detector=DETECTOR,
    window=300,
    discrepancy=0.75,
    threshold=0.3,
    n_discrepancy=600,
    distance="label",
    scale="relative",
    losses=LOSSES,
    importances={
        "pfi": ImportanceComparison(
            "squared", "unit of the target, squared", None, 300, 0.2, 0.9, 0.1, None, {"age": FEATURE}
        )
    },
)
VALUES = ValueFigures(50, 0.02, [17.0, 18.0, 25.0, 35.0, 53.0, 70.0, 82.0, 88.0, 90.0], {"unknown": 0.5}, 3)


def incident_event(**changes):
    values = {
        "id": "credit:t:0:1:0",
        "number": 3,
        "revision": 2,
        "model_id": "credit",
        "model_version": "2",
        "what": "changed",
        "life": "confirmed",
        "severity": "warning",
        "reason": "confirmed",
        "observation": 1559,
        "since": IncidentOnset(1250, None, 1255, "2026-05-01T00:00:00.000Z"),
        "effects": [IncidentEffect("loss", MeanEstimate(0.1, 0.01), None, MeanEstimate(0.3, 0.02))],
        "loss": "brier",
        "loss_unit": "squared probability",
        "features": {
            "größe": IncidentFeature(0.1, 0.2, 0.1, None, True, False, "", VALUES, None),
            "age": IncidentFeature(None, None, None, None, False, True, "is missing", None, VALUES),
        },
        "advice": "nothing",
        "intercept": None,
        "again": 0,
        "evidence": [IncidentEvidence("change", "suspects", 1260, True)],
        "headline": "The data of credit have changed, and it is adapting",
        "action": "Nothing to do.",
        "sentence": "The data of credit have changed, and it is adapting. Nothing to do. It began at 1 250.",
        "explanation": EXPLANATION,
        "source": SOURCE,
    }
    return IncidentEvent(**{**values, **changes})


LEFT_OUT = ("mode", "fidelity", "present_loss", "n_waiting", "n_expired", "label_delay_median_s")
"""Fields that are not there where they do not apply."""


def test_fields_that_do_not_apply_are_left_out_and_others_are_null():
    plain = json.loads(encode_json(importance_event(shift=None)))
    assert plain["shift"] is None
    assert not set(LEFT_OUT) & plain.keys()
    source = Source("t", 0, 3, origin=SourceOrigin("rentals", 2, 7), event_time="2026-05-01T00:00:00Z")
    said = json.loads(encode_json(importance_event(mode="mirror", fidelity=0.5, n_waiting=0, source=source)))
    assert (said["mode"], said["fidelity"], said["n_waiting"]) == ("mirror", 0.5, 0)
    assert said["source"]["origin"] == {"topic": "rentals", "partition": 2, "offset": 7}
    assert said["source"]["event_time"] == "2026-05-01T00:00:00Z"
    assert "n_expired" not in said


def test_an_incident_says_first_what_it_is():
    assert next(iter(decode_json(encode_json(incident_event())).items())) == ("event", "incident")


@pytest.mark.parametrize(
    "event", [importance_event(), incident_event(), incident_event(explanation=None, mode="mirror", effects=[])]
)
def test_an_event_is_a_json_object_with_its_fields_by_name(event):
    encoded = encode_json(event)
    said = {name: value for name, value in asdict(event).items() if name not in LEFT_OUT or value is not None}
    said["source"] = {"topic": SOURCE.topic, "partition": SOURCE.partition, "offset": SOURCE.offset}
    assert json.loads(encoded) == said
    assert decode_json(encoded) == said
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
        (
            lambda v: incident_event(
                explanation=replace(EXPLANATION, detector=DetectorSpec("adwin", {"delta": v}, "loss"))
            ),
            "explanation.detector.params.delta",
        ),
        (
            lambda v: incident_event(effects=[IncidentEffect("loss", MeanEstimate(0.1, v), None, None)]),
            "effects[0].before.half_width",
        ),
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

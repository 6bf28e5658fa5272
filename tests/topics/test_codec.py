"""Events out: plain JSON, never NaN, the same bytes for the same data."""

import json
import math
from dataclasses import asdict, dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_topics import (
    AlarmEvent,
    ChangeEvent,
    ChangeLosses,
    DetectorSpec,
    ExplanationEvent,
    FeatureChange,
    FeatureImportance,
    FigureMoved,
    ImportanceComparison,
    ImportanceEvent,
    ImportanceShiftEvent,
    ImportanceShiftReleasedEvent,
    LevelMoved,
    LossDifference,
    LossEstimate,
    LossShiftEvent,
    LossShiftExplainedEvent,
    LossShiftReleasedEvent,
    LossSuspect,
    NotConfirmedEvent,
    OnsetEstimate,
    QualityFigure,
    RecoveredEvent,
    ShiftSize,
    Source,
    SourceOrigin,
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


OF_ALL = {
    "model_id": "credit",
    "model_version_before": "1",
    "model_version": "2",
    "route": "detector",
    "observation": 1559,
    "reference_at": 300,
    "detector": DETECTOR,
    "discrepancy": 0.75,
    "threshold": 0.3,
    "n_discrepancy": 600,
    "distance": "label",
    "scale": "relative",
    "sentence": "credit changed",
    "source": SOURCE,
}
CLOSING = {**OF_ALL, "change_id": "credit:t:0:1:0", "detected_at": 1260, "window": 300, "losses": LOSSES}
SHIFT = {
    "model_id": "credit",
    "model_version": "2",
    "explainer": "pfi",
    "feature": "age",
    "direction": "rose",
    "observation": 9216,
    "detected_at": 9216,
    "onset": OnsetEstimate(8064, 7808, 8192),
    "reference_at": 5120,
    "before": 0.1,
    "after": 0.21,
    "size": ShiftSize(0.11, 0.08, 0.14),
    "least": 0.04,
    "loss": "brier",
    "loss_unit": "squared probability",
    "loss_largest": 2.0,
    "sentence": "credit relies more on age",
    "source": SOURCE,
}


MOVED = FigureMoved(0.35, 0.52, 0.12, 0.22, 6.5)
LOSS_SHIFT = {
    "model_id": "credit",
    "model_version": "2",
    "kind": "worse",
    "signal": "excess",
    "observation": 12160,
    "detected_at": 12160,
    "onset": OnsetEstimate(12003, 11990, 12020),
    "model_loss": MOVED,
    "excess": MOVED,
    "slope": None,
    "level": [LevelMoved("yes", 0.4, 0.5, 0.41), LevelMoved(None, 1.5, 2.0, 0.5)],
    "n_reference": 7808,
    "n_window": 128,
    "has_split": False,
    "loss": "log_loss",
    "loss_unit": "nats",
    "loss_largest": 6.9,
    "sentence": "credit has become worse",
    "source": SOURCE,
}
SUSPECT = LossSuspect(0.2, 0.3, 0.1, -0.2, 0.02, 1e-9, 0.4, True)


def explanation(**changes):
    values = {
        **CLOSING,
        "verdict": "followed",
        "onset": OnsetEstimate(1250, None, 1255),
        "pattern": None,
        "importances": {
            "pfi": ImportanceComparison(
                "squared", "unit of the target, squared", None, 300, 0.2, 0.9, 0.1, None, {"age": FEATURE}
            )
        },
    }
    return ExplanationEvent(**{**values, **changes})


KINDS = {
    "alarm": AlarmEvent(**OF_ALL, due_at=1860),
    "explanation": explanation(),
    "not_confirmed": NotConfirmedEvent(**CLOSING, verdict="equal"),
    "importance_shift": ImportanceShiftEvent(**SHIFT),
    "importance_shift_released": ImportanceShiftReleasedEvent(**SHIFT, change_id="credit:t:0:2:0", reason="returned"),
    "loss_shift": LossShiftEvent(**LOSS_SHIFT, due_at=13160),
    "loss_shift_explained": LossShiftExplainedEvent(
        **LOSS_SHIFT,
        change_id="credit:t:0:3:0",
        features={"age": SUSPECT},
        importance_loss="cross_entropy",
        n_before=500,
        n_after=500,
        expected=None,
    ),
    "loss_shift_released": LossShiftReleasedEvent(**LOSS_SHIFT, change_id="credit:t:0:3:0", reason="settled"),
    "recovered": RecoveredEvent(
        model_id="credit",
        model_version="2",
        observation=131,
        back_to=100,
        n_forgotten=31,
        n_failed=3,
        stage="learn",
        error="TypeError",
        sentence="credit failed on 3 observations in a row",
        source=SOURCE,
    ),
}
"""Event by its kind, as the field `event` names it."""


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


@pytest.mark.parametrize("kind", KINDS)
def test_an_event_of_change_says_first_what_it_is(kind):
    assert isinstance(KINDS[kind], ChangeEvent)
    assert next(iter(decode_json(encode_json(KINDS[kind])).items())) == ("event", kind)


@pytest.mark.parametrize(
    "event", [importance_event(), *KINDS.values(), explanation(detector=None, losses=None, onset=None, importances={})]
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
        (lambda v: explanation(detector=DetectorSpec("adwin", {"delta": v}, "loss")), "detector.params.delta"),
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

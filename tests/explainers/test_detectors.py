"""Detectors by name; every parameter out of its range is refused before the first observation."""

import math

import pytest
from river import drift, naive_bayes

from attributary_explainers import DETECTOR_NAMES, ChangeExplainer, InvalidParameterError, make_detector

BAD = {
    "adwin": {
        "delta": [5, 0.0, 1.0, -0.1, math.nan, True, "0.1", None],
        "clock": [0, -1, 1.5, True, "32"],
        "max_buckets": [1, 0, 2.5],
        "min_window_length": [0, 1.5],
        "grace_period": [0, -3],
    },
    "page_hinkley": {
        "min_instances": [0, 2.5, True],
        "delta": [-0.1, math.nan, math.inf],
        "threshold": [0.0, -1.0, math.inf],
        # The forgetting factor of the cumulative sum: above 1 the sum grows without bound on a stream without drift.
        "alpha": [0.0, -0.5, 1.5, 5.0, math.nan],
        "mode": ["sideways", 1, None],
    },
}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(name, p, value) for name, checked in BAD.items() for p, values in checked.items() for value in values],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(name, parameter, value):
    with pytest.raises(InvalidParameterError) as caught:
        make_detector(name, {parameter: value})
    assert caught.value.parameter == f"{name}.{parameter}"
    assert str(caught.value).startswith(f"{name}.{parameter} must be ")
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_an_unknown_parameter_is_refused_with_the_known_ones(name):
    with pytest.raises(InvalidParameterError) as caught:
        make_detector(name, {"sensitivity": 1})
    assert "sensitivity" in str(caught.value)
    assert all(parameter in str(caught.value) for parameter in BAD[name])


@pytest.mark.parametrize("name", ["ADWIN", "kswin", "", None, 3])
def test_an_unknown_detector_is_refused_with_the_known_ones(name):
    with pytest.raises(InvalidParameterError, match=r"^detector must be one of adwin, page_hinkley, got "):
        make_detector(name)


def test_every_name_gives_rivers_detector_with_the_given_parameters():
    assert set(DETECTOR_NAMES) == set(BAD)
    adwin = make_detector("adwin", {"delta": 0.025, "clock": 5, "max_buckets": 4, "min_window_length": 3})
    assert type(adwin) is drift.ADWIN
    assert (adwin.delta, adwin.clock) == (0.025, 5)
    hinkley = make_detector("page_hinkley", {"threshold": 3, "mode": "up", "delta": 0.0})
    assert type(hinkley) is drift.PageHinkley
    assert (hinkley.threshold, hinkley.mode, hinkley.delta) == (3.0, "up", 0.0)


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_a_detector_sees_a_jump_of_the_error_and_not_a_constant(name):
    detector = make_detector(name, {"threshold": 10.0} if name == "page_hinkley" else {})
    for alarm, value in ((False, 0.0), (True, 1.0)):
        seen = []
        for _ in range(500):
            detector.update(value)
            seen.append(detector.drift_detected)
        assert any(seen) is alarm


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"window": 1}, "window"),
        ({"window": 10.0}, "window"),
        ({"threshold": -0.1}, "threshold"),
        ({"threshold": math.nan}, "threshold"),
        ({"threshold": math.inf}, "threshold"),
        ({"n_permutations": 0}, "n_permutations"),
        ({"signal": "accuracy"}, "signal"),
        ({"distance": "l2"}, "distance"),
        ({"loss": "hinge"}, "loss"),
        ({"detector": "ddm"}, "detector"),
        ({"detector_params": {"delta": 5}}, "adwin.delta"),
        ({"detector_params": {"clock": 0}}, "adwin.clock"),
        ({"groups": {"g": []}}, "groups"),
        ({"groups": {"g": ["a"], "h": ["a"]}}, "groups"),
    ],
)
def test_the_change_explainer_refuses_bad_parameters_at_construction(parameters, named):
    with pytest.raises(InvalidParameterError) as caught:
        ChangeExplainer(naive_bayes.GaussianNB(), **parameters)
    assert caught.value.parameter == named

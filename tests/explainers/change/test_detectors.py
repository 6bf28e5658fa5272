"""Detectors by name; every parameter out of its range is refused before the first observation."""

import inspect
import math

import pytest
from river import base, drift, naive_bayes

from attributary_explainers import DETECTOR_NAMES, ChangeExplainer, InvalidParameterError, make_detector
from attributary_explainers.change.detectors import DETECTORS_OF_ERRORS

PROBABILITY = [0.0, 1.0, -0.1, 2.0, math.nan, True, "0.1", None]
COUNT = [0, -1, 2.5, True, "32", 2**31]
FLAG = [0, 1, "yes", None]
BAD = {
    "adwin": {
        "delta": [5, *PROBABILITY],
        "clock": [*COUNT, 2**70],
        "max_buckets": [1, *COUNT, 1001, 2**31 - 1],
        "min_window_length": COUNT,
        "grace_period": COUNT,
    },
    "kswin": {
        "alpha": PROBABILITY,
        # Half of 59 is less than the default stat_size: River would raise a ValueError with the 59th observation.
        "window_size": [1, *COUNT],
        "stat_size": [51, 100, 5, 1, *COUNT],
        "seed": [-1, 1.0, True, None, 2**63],
    },
    "ddm": {
        "warm_start": COUNT,
        "warning_threshold": [0.0, -1.0, math.inf, math.nan, True, "2", None, 3.5],
        "drift_threshold": [0.0, -1.0, math.inf, math.nan, True, "3", None],
    },
    "eddm": {"warm_start": COUNT, "alpha": [*PROBABILITY, 0.85], "beta": PROBABILITY},
    "fhddm": {
        "sliding_window_size": [*COUNT, 6],
        "confidence_level": PROBABILITY,
        "short_window_size": [0, -1, 2.5, True, "32", 2**31, 6, 101],
    },
    "hddm_a": {"drift_confidence": PROBABILITY, "warning_confidence": [*PROBABILITY, 0.0005], "two_sided_test": FLAG},
    "hddm_w": {
        "drift_confidence": PROBABILITY,
        "warning_confidence": [*PROBABILITY, 0.0005],
        "lambda_val": [0.0, -0.1, 1.5, math.nan, True, "0.1", None, 1.0, 0.253],
        "two_sided_test": FLAG,
    },
    "page_hinkley": {
        "min_instances": COUNT,
        "delta": [-0.1, -5e-324, math.nan, math.inf, True, "0", None],
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


@pytest.mark.parametrize("name", ["ADWIN", "cusum", "", None, 3])
def test_an_unknown_detector_is_refused_with_the_known_ones(name):
    known = "adwin, ddm, eddm, fhddm, hddm_a, hddm_w, kswin, page_hinkley"
    with pytest.raises(InvalidParameterError, match=f"^detector must be one of {known}, got "):
        make_detector(name)


def test_every_detector_of_river_that_reads_a_signal_has_a_name():
    assert set(DETECTOR_NAMES) == set(BAD)
    made = {name: make_detector(name, seed=1) for name in DETECTOR_NAMES}
    rivers = {
        value
        for module in (drift, drift.binary)
        for _, value in inspect.getmembers(module, inspect.isclass)
        if issubclass(value, base.DriftDetector | base.BinaryDriftDetector)
    }
    # These two alarm by a clock or never, whatever they are fed.
    rivers -= {drift.DummyDriftDetector, drift.NoDrift}
    assert {next(c for c in type(d).__mro__ if c in rivers) for d in made.values()} == rivers
    assert {n for n, d in made.items() if isinstance(d, base.BinaryDriftDetector)} == DETECTORS_OF_ERRORS


def test_every_parameter_of_river_is_known_but_for_kswins_data():
    for name, checked in BAD.items():
        taken = set(inspect.signature(type(make_detector(name))).parameters)
        assert set(checked) == taken - ({"window"} if name == "kswin" else set())


GIVEN = {
    "adwin": {"delta": 0.025, "clock": 5, "max_buckets": 4, "min_window_length": 3, "grace_period": 1},
    "page_hinkley": {"threshold": 3, "mode": "up", "delta": 0.0, "min_instances": 1, "alpha": 1.0},
    "kswin": {"alpha": 0.003, "window_size": 60, "stat_size": 30, "seed": 0},
    "ddm": {"warm_start": 1, "warning_threshold": 2.5, "drift_threshold": 2.5},
    "eddm": {"warm_start": 1, "alpha": 0.8, "beta": 0.8},
    "fhddm": {"sliding_window_size": 25, "confidence_level": 0.001, "short_window_size": 25},
    "hddm_a": {"drift_confidence": 0.02, "warning_confidence": 0.02, "two_sided_test": True},
    "hddm_w": {"drift_confidence": 0.02, "warning_confidence": 0.3, "lambda_val": 0.2, "two_sided_test": True},
}


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_the_given_parameters_reach_rivers_detector(name):
    assert set(GIVEN[name]) == set(BAD[name])
    detector = make_detector(name, GIVEN[name])
    assert {parameter: getattr(detector, parameter) for parameter in GIVEN[name]} == GIVEN[name]


@pytest.mark.parametrize("name", DETECTOR_NAMES)
def test_without_parameters_they_are_rivers_defaults(name):
    detector = make_detector(name, seed=5)
    for parameter, value in inspect.signature(type(detector)).parameters.items():
        if parameter not in ("seed", "window"):
            assert getattr(detector, parameter) == value.default


@pytest.mark.parametrize(
    ("name", "parameters", "named", "because"),
    [
        ("kswin", {"window_size": 59}, "kswin.stat_size", "half of kswin.window_size, which is 59"),
        ("kswin", {"window_size": 10, "stat_size": 6}, "kswin.stat_size", "<= 5"),
        ("kswin", {"alpha": 1e-20}, "kswin.stat_size", "kswin.alpha is 1e-20"),
        ("ddm", {"warning_threshold": 2, "drift_threshold": 1.5}, "ddm.warning_threshold", "which is 1.5"),
        ("eddm", {"alpha": 0.95, "beta": 0.96}, "eddm.alpha", "which is 0.96"),
        ("fhddm", {"confidence_level": 1e-90}, "fhddm.sliding_window_size", "> 103.6"),
        ("fhddm", {"sliding_window_size": 20, "short_window_size": 21}, "fhddm.short_window_size", "which is 20"),
        ("hddm_a", {"drift_confidence": 0.2, "warning_confidence": 0.1}, "hddm_a.warning_confidence", "which is 0.2"),
        ("hddm_w", {"drift_confidence": 1e-40}, "hddm_w.lambda_val", "0.02148"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(name, parameters, named, because):
    with pytest.raises(InvalidParameterError) as caught:
        make_detector(name, parameters)
    assert caught.value.parameter == named
    assert because in str(caught.value)


@pytest.mark.parametrize(
    ("name", "given", "follows"),
    [
        ("ddm", {"drift_threshold": 1.5}, "warning_threshold"),
        ("eddm", {"beta": 0.97}, "alpha"),
        ("hddm_a", {"drift_confidence": 0.05}, "warning_confidence"),
        ("hddm_w", {"drift_confidence": 0.05}, "warning_confidence"),
    ],
)
def test_a_warning_that_is_left_out_follows_its_alarm(name, given, follows):
    assert getattr(make_detector(name, given), follows) == next(iter(given.values()))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_bad_seed_is_refused_where_it_is_used(seed):
    with pytest.raises(InvalidParameterError, match=r"^seed must be an integer"):
        make_detector("kswin", seed=seed)


def test_the_seed_is_that_of_the_parameters_then_the_given_one_then_a_drawn_one():
    assert make_detector("kswin", {"seed": 3}, seed=4).seed == 3
    assert make_detector("kswin", seed=4).seed == 4
    drawn = [make_detector("kswin").seed for _ in range(4)]
    assert len(set(drawn)) == 4  # two equal ones of 63 bits: once in 10**18 runs
    assert all(isinstance(seed, int) for seed in drawn)


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
        ({"detector": "cusum"}, "detector"),
        ({"detector_params": {"delta": 5}}, "adwin.delta"),
        ({"detector_params": {"clock": 0}}, "adwin.clock"),
        ({"detector": "kswin", "detector_params": {"window_size": 40}}, "kswin.stat_size"),
        ({"groups": {"g": []}}, "groups"),
        ({"groups": {"g": ["a"], "h": ["a"]}}, "groups"),
        ({"detector": None, "watch_discrepancy": False}, "detector"),  # nothing would alarm
    ],
)
def test_the_change_explainer_refuses_bad_parameters_at_construction(parameters, named):
    with pytest.raises(InvalidParameterError) as caught:
        ChangeExplainer(naive_bayes.GaussianNB(), **parameters)
    assert caught.value.parameter == named

"""The signal of the detector has no unit, and only a rise alarms."""

import random

import numpy as np
import pytest

from attributary_explainers import InvalidParameterError, make_detector
from attributary_explainers.change.watch import SignalWatch
from attributary_explainers.pickling import dump_model


def watch(signal="loss", **parameters):
    given = {"detector": "adwin", "detector_params": {"delta": 0.025}, "one_sided": True, "seed": lambda: 1}
    given.update(parameters)
    return SignalWatch(given.pop("detector"), given.pop("detector_params"), signal=signal, **given)


@pytest.mark.parametrize("shift", [0.0, -0.7])
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e3, 1e6])
def test_alarms_come_at_the_same_observation_at_any_scale(scale, shift):
    rng = np.random.default_rng(2)
    losses = np.concatenate((rng.exponential(size=1500), rng.exponential(size=300) * 3)) + shift
    found = []
    for unit in (1.0, scale):
        of = watch()
        of.set_unit((unit * losses[:200]).tolist())
        found.append([n for n, loss in enumerate(unit * losses, start=1) if of.update(False, float(loss))])
    assert found[0] == found[1]
    assert 1500 < found[0][0] < 1700


def test_the_signal_is_a_half_at_a_typical_loss():
    of = watch()
    of.set_unit([1.0, 3.0])
    assert [of.without_unit(loss) for loss in (0.0, 2.0, 6.0)] == pytest.approx([0.0, 0.5, 0.75])
    of.set_unit([-1.0, 3.0])
    assert [of.without_unit(loss) for loss in (-1.0, 1.0, 3.0)] == pytest.approx([0.25, 0.5, 0.75])


def test_before_a_typical_loss_is_known_nothing_is_watched():
    of = watch()
    assert not any(of.update(True, float(n)) for n in range(500))
    assert watch("zero_one").has_unit


@pytest.mark.parametrize(
    ("name", "n_each"),
    [("adwin", 1000), ("page_hinkley", 1000), ("kswin", 400), pytest.param("kswin", 1000, marks=pytest.mark.long)],
)
def test_a_fall_of_the_error_is_no_alarm(name, n_each):
    def alarms(one_sided, levels):
        rng = np.random.default_rng(4)
        detector = make_detector(name, seed=1, one_sided=one_sided)
        found = []
        for n, level in enumerate(np.repeat(levels, n_each), start=1):
            detector.update(float(rng.random() < level))
            if detector.drift_detected:
                found.append(n)
        return found

    assert alarms(one_sided=False, levels=(0.9, 0.1)) or name == "page_hinkley"
    assert [n for n in alarms(one_sided=True, levels=(0.9, 0.1)) if n > n_each] == []
    assert [n for n in alarms(one_sided=True, levels=(0.1, 0.9)) if n > n_each]


def test_after_a_fall_the_newest_values_are_what_a_rise_is_told_from():
    rng = np.random.default_rng(5)
    detector = make_detector("adwin", {"delta": 0.025}, one_sided=True)
    found = []
    for n, level in enumerate(np.repeat((0.5, 0.1, 0.5), 1000), start=1):
        detector.update(float(rng.random() < level))
        if detector.drift_detected:
            found.append(n)
    assert len(found) == 1
    assert 2000 < found[0] < 2100


@pytest.mark.parametrize(
    ("parameters", "signal", "named"),
    [
        ({"detector": None, "detector_params": {"delta": 0.1}}, "loss", "detector_params"),
        ({"detector": "ddm", "detector_params": {}}, "loss", "signal"),
    ],
)
def test_what_cannot_be_is_refused(parameters, signal, named):
    with pytest.raises(InvalidParameterError) as error:
        watch(signal, **parameters)
    assert error.value.parameter == named


@pytest.mark.parametrize("seed", range(6))
def test_alarms_and_stored_detector_are_those_of_the_detector_itself(seed):
    rng = random.Random(seed)
    parameters = {"delta": 0.5, "clock": (32, 3, 100)[seed % 3]}
    one_sided, errors = seed % 2 == 0, seed < 4
    given = {"detector_params": parameters, "one_sided": one_sided}
    of = watch("zero_one" if errors else "loss", **given)
    of.set_unit([1.0, 0.3])
    detector = make_detector("adwin", parameters, seed=1, one_sided=one_sided)
    found, expected = [], []
    for n in range(4000):
        rate = (0.2, 0.7)[n // 500 % 2]
        is_wrong, loss = rng.random() < rate, rng.expovariate(1) * rate
        detector.update(float(is_wrong) if errors else of.without_unit(loss))
        expected.append(bool(detector.drift_detected))
        found.append(of.update(is_wrong, loss))
        if n in (40, 700, 1234, 3210):
            snapshot = of.snapshot()
            assert snapshot["detector"] == dump_model(detector)
            of = watch("zero_one" if errors else "loss", **given)
            of.restore(snapshot)
    assert found == expected
    assert sum(expected) > 1

"""The closed forms of a queue, beside what they become where they are known by other means."""

import math

import pytest

from attributary_agents.planning.queueing import mean_wait, wait_quantile


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_an_exponential_service_gives_m_m_1(load: float) -> None:
    # Mean number in the system of M/M/1 is load / (1 - load); by Little's law the rest follows.
    in_system = load / (1.0 - load)
    assert mean_wait(load, 1.0, 1.0) == pytest.approx(in_system / load - 1.0)
    # P(W > t) = load · exp(-(1 - load) t), which is exact.
    waits = wait_quantile(0.99, load, 1.0, 1.0)
    assert load * math.exp(-(1.0 - load) * waits) == pytest.approx(0.01) or (waits == 0.0 and load <= 0.01)


def test_a_constant_service_halves_the_wait() -> None:
    assert mean_wait(70.0, 0.01, 0.0) == pytest.approx(mean_wait(70.0, 0.01, 1.0) / 2)


def test_times_have_the_unit_of_the_service() -> None:
    assert mean_wait(600.0, 0.001) == pytest.approx(mean_wait(0.6, 1.0) / 1000)


def test_what_never_ends_is_infinite_and_what_never_waits_is_zero() -> None:
    assert math.isinf(mean_wait(1.0, 1.0))
    assert math.isinf(wait_quantile(0.5, 2.0, 1.0))
    assert wait_quantile(0.5, 0.3, 1.0) == 0.0

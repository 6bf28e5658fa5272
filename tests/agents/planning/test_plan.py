"""A plan beside the arithmetic that it stands for."""

import math
from typing import Any

import pytest

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError
from attributary_agents.planning.plan import (
    Capacity,
    PlanError,
    Wanted,
    installed_capacity,
    largest_share,
    make_plan,
    models_stored,
    terms,
    wait_quantile,
)
from attributary_agents.planning.timing import Timed, time_model, yardstick

TIMED = Timed(100e-6, 0.0, 1e-3, 10_000, 1000, 1000)
STEP_ALONE = {**dict.fromkeys(terms(1.0, 1.0, 1.0), 0.0), "step": 1.0}
PLAIN = Capacity(STEP_ALONE, 0.1, 2e8, 5.0)
"""A record costs what its step takes."""


def config(**more: Any) -> Config:
    model = {"model": {"class": "river.linear_model.LogisticRegression"}, "features": {"a": "number", "b": "number"}}
    return parse_config({"models": {"m": model}, **more})


def plan_of(rate: float | None, models: int, busy: float = 0.6, **more: Any) -> Any:
    return make_plan(config(**more), Wanted(rate, models, busy), {"m": TIMED}, 10e-6, PLAIN)


def test_one_worker_carries_what_its_time_allows() -> None:
    found = plan_of(None, 1)
    assert found.per_worker == pytest.approx(10_000)
    assert found.carried is None


def test_workers_are_as_few_as_carry_the_load() -> None:
    found = plan_of(50_000.0, 5000).carried
    # 5 of them would be busy all the time: 60 % wants 8.4, and shares are not even.
    assert 9 <= found.workers <= 11
    assert found.busiest <= 0.6
    share = largest_share(5000, 4 * (found.workers - 1), found.workers - 1)
    assert 50_000 * share * 100e-6 > 0.6
    assert found.partitions == 4 * found.workers


def test_one_model_cannot_have_two_workers() -> None:
    assert plan_of(5_900.0, 1).carried.workers == 1
    with pytest.raises(PlanError, match="one worker, which handles 6,000 a second in 60% of its time"):
        plan_of(6_100.0, 1)


def test_a_sharded_model_has_as_many_workers_as_its_records_need() -> None:
    model = {"model": {"class": "river.linear_model.LogisticRegression"}, "learn": False, "sharded": True}
    sharded = parse_config({"models": {"m": {**model, "features": {"a": "number"}}}, "kafka": {"partitions": 8}})
    found = make_plan(sharded, Wanted(18_000.0, 1), {"m": TIMED}, 10e-6, PLAIN)
    # 100 us each: 1.8 workers are busy all the time. Of 8 partitions three workers have 3, 3 and 2, and four 2 each.
    assert (found.carried.workers, found.carried.partitions) == (4, 8)
    assert found.carried.busiest == pytest.approx(18_000 * 100e-6 * 2 / 8)
    assert found.worker_bytes == 2e8 + 5.0 * 10_000 * 2
    assert found.stored_bytes == 8 * 10_000
    with pytest.raises(PlanError, match=r"one worker, which .* sharded: true"):
        plan_of(18_000.0, 1, kafka={"partitions": 8})


def test_where_each_model_would_fit_the_hash_is_what_is_said() -> None:
    # 5 000 a second each, of the 6 000 that a worker handles: no model is too large, and two are at one worker.
    with pytest.raises(PlanError, match="a hash spreads them over the partitions") as told:
        plan_of(60_000.0, 12)
    assert "of one partition" not in str(told.value)
    busiest = 60_000 * largest_share(12, 12, 12)
    assert f"of 12 workers the busiest would have {busiest:,.0f} records a second" in str(told.value)
    with pytest.raises(PlanError, match="one worker, which handles 6,000 a second"):
        plan_of(12 * 6_100.0, 12)


def test_around_the_step_the_capacity_model_adds() -> None:
    dear = PLAIN._replace(coefficients={**STEP_ALONE, "record": 2.0, "kilobytes stored": 1.0})
    timed = TIMED._replace(encode_s=0.0)
    found = make_plan(config(), Wanted(100.0, 1), {"m": timed}, 10e-6, dear)
    # A checkpoint each 10 s at 100/s, over the 4 configured partitions: a model of 10 kB in 250 records of one.
    assert found.record_us == pytest.approx(100.0 + 2 * 10.0 + 10 / 250 * 10.0)
    assert found.carried.changelog_per_s == pytest.approx(100.0 * 10_000 / 250)


def test_memory_grows_with_the_models_of_a_worker() -> None:
    one, many = plan_of(None, 1), plan_of(None, 1001)
    assert one.worker_bytes == 2e8 + 5.0 * 10_000
    assert many.worker_bytes - one.worker_bytes == 5.0 * 10_000 * 1000


def test_what_waits_for_a_missed_worker_is_handled_by_what_is_spare() -> None:
    found = plan_of(50_000.0, 5000, kafka={"session_timeout_s": 30.0}).carried
    rate = found.busiest / 100e-6
    spare = (found.workers - 1) * 10_000 - 50_000
    assert found.catch_up_s == pytest.approx((30.0 * rate + found.replay_records) / spare)
    assert found.replay_records <= 10.0 * rate
    assert math.isinf(plan_of(18_000.0, 5000, 0.97).carried.catch_up_s)


def test_stored_models_are_the_distinct_ones_of_a_checkpoint() -> None:
    often = config(checkpoint={"interval_s": 1000, "max_observations": 300})
    # 300 records of 100 models hit 100 · (1 - 0.99³⁰⁰) of them.
    assert models_stored(often, 0.0, 100, 1, 1000.0) == pytest.approx(100 * (1 - 0.99**300) / 300)
    assert models_stored(often, 0.0, 1, 1, 1000.0) == pytest.approx(1 / 300)
    # A dear state is stored less often: 1 s may be a tenth of the time, so each 9 s.
    assert models_stored(often, 1.0, 1, 1, 1000.0) == pytest.approx(1 / 9000)


@pytest.mark.parametrize(("models", "workers", "partitions"), [(2, 2, 2), (3, 2, 64)])
def test_the_largest_share_is_that_of_balls_in_bins(models: int, workers: int, partitions: int) -> None:
    exact = {(2, 2): 0.75, (3, 2): (1.0 * 2 + 6 * 2 / 3) / 8}[models, workers]
    assert largest_share(models, partitions, workers) == pytest.approx(exact, abs=0.1)


def test_several_models_are_planned_for_as_their_mean() -> None:
    timed = {"m": TIMED, "n": TIMED._replace(step_s=300e-6, state_bytes=30_000)}
    found = make_plan(config(), Wanted(None, 2), timed, 10e-6, PLAIN)
    assert (found.record_us, found.stored_bytes) == (pytest.approx(200), pytest.approx(40_000))


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
def test_an_exponential_service_waits_as_m_m_1_does(load: float) -> None:
    # P(W > t) = load · exp(-(1 - load) t / service), which is exact; a share of 1 - load does not wait.
    for q in (0.5, 0.99):
        wait = wait_quantile(q, load / 0.01, 0.01, 1.0)
        assert load * math.exp(-(1.0 - load) * wait / 0.01) == pytest.approx(min(load, 1.0 - q))
    assert wait_quantile(0.99, load, 1.0, 0.0) == pytest.approx(wait_quantile(0.99, load, 1.0, 1.0) / 2)
    assert wait_quantile(0.5, 1.0 / load, 1.0, 1.0) == math.inf


def test_the_installed_capacity_model_prices_every_term() -> None:
    capacity = installed_capacity()
    assert capacity.coefficients.keys() == terms(1.0, 1.0, 1.0).keys()
    assert min(capacity.coefficients.values()) > 0.0
    assert min(capacity.error, capacity.worker_bytes, capacity.bytes_per_stored) > 0.0


def test_a_model_is_timed_by_what_it_does() -> None:
    values = [b'{"x": {"a": %d, "b": 1}, "y": %s}' % (n, b"true" if n % 2 else b"false") for n in range(10)]
    timed = time_model(config(), "m", [*values, b"no JSON"], 0.05)
    # They pass in blocks for some time, and then 400 by themselves.
    assert timed.n_used == timed.n - (timed.n - 400) // 11 - 400 // 11
    assert min(timed.step_s, timed.encode_s, timed.cv2) > 0.0
    assert timed.state_bytes > 100
    assert yardstick() > 0.0


def _read(lines: list[str]) -> list[bytes]:
    return [line.encode() for line in lines]


def test_a_stream_with_missing_values_and_text_is_timed_by_the_rows_that_the_model_takes() -> None:
    forest = {"class": "river.forest.ARFRegressor", "params": {"n_models": 3, "seed": 1}}
    raw = {"models": {"pump": {"model": forest, "explainers": {"pfi": {"n_samples": 2}}}}}
    values = []
    for i in range(400):
        a = "null" if i % 7 == 0 else str((i * 37 % 101) / 50)
        b = '"shut"' if i % 50 == 49 else str(1e4 + i * 53 % 97)
        values.append(f'{{"x": {{"a": {a}, "b": {b}}}, "y": {1e5 + i * 37 % 101}}}')
    found = time_model(parse_config(raw), "pump", _read(values), 0.2)
    assert 0 < found.n_used < found.n, "rows with text are dead letters"
    assert found.step_s > 0


def test_where_the_model_takes_no_row_the_plan_says_who_knows_why() -> None:
    values = _read(['{"x": {"a": "shut"}, "y": 1.5}'] * 30)
    tree = {"models": {"pump": {"model": {"class": "river.linear_model.LinearRegression"}}}}
    with pytest.raises(ConfigError, match="none of the 30 rows can be used by pump: `attributary check --sample`"):
        time_model(parse_config(tree), "pump", values, 0.1)

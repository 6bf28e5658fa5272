"""What a record and a state cost, in small: what is measured is there, and the capacity model is current."""

import json
import os
import time

import pytest
from benchmarks.process import processor_s
from benchmarks.scale import __main__ as scale
from benchmarks.scale import fit, price, report, state
from benchmarks.scale.cases import EVERYTHING, cases, configuration, loops, workers
from benchmarks.scale.records import records
from benchmarks.scale.state import Case, measure

from attributary_agents.config.reading import parse_config


def test_a_state_takes_memory_bytes_and_time() -> None:
    cost = measure(Case(3, "young", "change: null"), 2)
    assert min(vars(cost).values()) > 0.0
    assert cost.stored < cost.restored


def test_an_observation_that_waits_takes_more_than_one_that_is_remembered() -> None:
    in_memory, stored, remembered_in_memory, remembered_stored = state.waiting(300, 8)
    assert in_memory > remembered_in_memory > 0.0
    assert stored > remembered_stored > 0.0


def test_without_a_sub_command_it_is_the_price_of_a_record(monkeypatch) -> None:
    called = []
    monkeypatch.setattr(price, "main", lambda given: called.append(given) or 0)
    assert scale.main(["--quick"]) == 0
    assert scale.main(["price", "--full"]) == 0
    assert called == [["--quick"], ["--full"]]
    assert scale.main(["prices"]) == 2


def test_the_committed_capacity_model_is_what_the_command_makes() -> None:
    made = fit.capacity(json.loads(fit.MEASURED.read_text()))
    assert fit.FITTED.read_text() == fit.dumped(made)


def test_known_coefficients_are_found_again() -> None:
    true = {"record": 3.0, "step": 1.2, "models stored": 4.0, "kilobytes stored": 0.1}
    points = {}
    for n in range(30):
        one = fit.Point(2.0 + n % 11, 0.1 * (n % 3), 1000.0 * (n % 4), 1 + n % 2, 0.0, 0.0)
        points[str(n)] = one._replace(record=sum(true[name] * value for name, value in one.terms.items()))
    coefficients, residuals = fit.fitted(points)
    assert coefficients == pytest.approx(true, abs=1e-3)
    assert max(map(abs, residuals.values())) < 1e-3


def test_ratios_are_of_the_same_round() -> None:
    taken = [
        {"case": "one", "subject": subject, "round": number, "cpu_us": us}
        for subject, number, us in [("a", 0, 10.0), ("b", 0, 5.0), ("a", 1, 30.0), ("b", 1, 10.0), ("a", 2, 1.0)]
    ]
    assert report.ratios(taken, "one", "a", "b") == [2.0, 3.0]
    assert report.spread([2.0, 3.0, 4.0]) == "3 (2–4)"


def test_outside_the_model_is_the_whole_less_the_model() -> None:
    taken = [
        {"case": "one", "subject": "worker, iPFI 10", "round": number, "cpu_us": us}
        for number, us in ((0, 90.0), (1, 110.0))
    ]
    found = {"taken": taken, "alone": {"one": {"model_us": 15.0, "explained_us": 60.0}}}
    assert report.fixed_us(found, "one", "worker, iPFI 10") == 40.0
    assert report.fixed_us(found, "one", "worker, default") is None


def test_beside_a_forest_stands_the_worker_that_explains_everything() -> None:
    among = [*workers().values(), *loops().values()]
    forest, many = ({one.name for one in price.subjects_of(cases(60_000)[name], among)} for name in ("forest", "many"))
    assert {"worker, learn", "worker, iPFI 10", f"worker, {EVERYTHING}"} <= forest
    assert f"worker, {EVERYTHING}" not in many
    explained = workers()[f"worker, {EVERYTHING}"]
    model = parse_config(configuration(cases(60_000)["forest"], explained, "localhost:1", "g")).models["model-00000"]
    assert model.change is not None
    assert model.explainers.pfi.n_samples == model.explainers.sage.n_samples == 10
    assert model.explainers.pdp is model.explainers.mdi is None


def test_a_topic_has_every_model_once_a_round() -> None:
    made = list(records(30, 3, 20, 2, 1))
    keys = [key for key, _ in made]
    odd = {f"model-{number:05d}".encode() for number in range(1, 20, 2)}
    assert set(keys[:10]) == set(keys[10:20]) == odd
    assert keys[:10] != keys[10:20]
    assert json.loads(made[0][1])["x"].keys() == {"f0", "f1", "f2"}


def test_the_clock_of_a_process_is_read_from_outside() -> None:
    before = time.process_time()
    between = processor_s(os.getpid())
    assert before <= between <= time.process_time()


@pytest.mark.kafka
@pytest.mark.long
def test_the_worker_stands_beside_a_bare_agent(kafka_broker, tmp_path) -> None:
    path = tmp_path / "found.json"
    given = ["--records", "6000", "--rounds", "1", "--no-latency", "--out", str(tmp_path / "out"), "--json", str(path)]
    assert price.main([*given, "--only", "bare", "nothing watched"]) == 0
    found = json.loads(path.read_text())
    assert {one["subject"] for one in found["taken"]} == {
        "bare Faust agent",
        "worker, learn, nothing watched",
    }
    for one in found["taken"]:
        assert min(one["n"], one["cpu_us"], one["broker_us"], one["per_s"], one["pss"]) > 0

"""The sensor network: what the network and the autoencoder are, how faults are judged, and one fault in a worker."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from examples.sensor_network.__main__ import summary, table
from examples.sensor_network.autoencoder import Autoencoder
from examples.sensor_network.experiment import MODEL, judge
from examples.sensor_network.network import KINDS, Fault, Network, make_network
from examples.sensor_network.running import without_kafka

from attributary_agents.config.models import ModelConfig
from attributary_agents.models.trial import check_model


def test_five_sensors_have_one_fault_each_and_nothing_else_differs() -> None:
    network, same = make_network(3, 8), make_network(3, 8)
    assert np.array_equal(network.readings, same.readings)
    assert [fault.kind for fault in network.faults] == list(KINDS)
    assert len({fault.sensor for fault in network.faults}) == 5
    assert all(one.end < other.begin for one, other in pairwise(network.faults))
    held = make_network(3, 8, stuck="held")
    (rows, columns) = np.nonzero(network.readings != held.readings)
    stuck = network.faults[0]
    assert set(columns) == {network.names.index(stuck.sensor)}
    assert set(rows) <= set(range(stuck.begin, stuck.end))


def test_a_fault_is_what_its_name_says() -> None:
    network = make_network(1, 8, warm_up=500, length=300, between=100)
    spread = {}
    for fault in network.faults:
        column = network.readings[:, network.names.index(fault.sensor)]
        during, before = column[fault.begin : fault.end], column[: fault.begin]
        spread[fault.kind] = (during.mean() - before.mean()) / before.std(), during.std() / before.std(), during
    assert spread["stuck"][1] == 0.0
    assert spread["stuck"][2][0] == network.readings[:500, network.names.index(network.faults[0].sensor)].min()
    assert spread["offset"][0] == pytest.approx(3.0, abs=1.0)
    assert spread["drift"][0] == pytest.approx(3.0, abs=1.0)
    assert spread["noise"][1] == pytest.approx(5.0**0.5, abs=0.6)
    assert spread["spikes"][1] == pytest.approx((1.0 + 6.4) ** 0.5, abs=0.9)


def test_the_autoencoder_scores_many_as_one_and_learns_what_goes_together() -> None:
    network = make_network(1, 8, warm_up=1500, length=1, between=0)
    rows = network.rows()[:1500]
    model = Autoencoder(learning_rate=0.02)
    assert model.score_one(rows[0]) is None
    for x in rows:
        model.learn_one(x)
    frame = pd.DataFrame(rows[-50:])
    one_by_one = [model.score_one(x) for x in rows[-50:]]
    assert model.score_many(frame).tolist() == pytest.approx(one_by_one, rel=1e-12)
    assert model.score_many(frame[frame.columns[::-1]]).tolist() == pytest.approx(one_by_one, rel=1e-12)
    shuffled = pd.DataFrame(
        {name: frame[name].sample(frac=1.0, random_state=i).to_numpy() for i, name in enumerate(frame)}
    )
    assert model.score_many(shuffled).mean() > 2.0 * np.mean(one_by_one)
    assert model.score_one({**rows[-1], "p01": None}) is not None


def test_a_gradient_step_is_the_derivative_of_the_score() -> None:
    model = Autoencoder(hidden=4, latent=2, learning_rate=1e-3, seed=3)
    rows = make_network(2, 5, warm_up=80, length=1, between=0).rows()[:60]
    for x in rows[:-1]:
        model.learn_one(x)
    weights, biases = [one.copy() for one in model.weights], [one.copy() for one in model.biases]
    model.learn_one(rows[-1])  # by the scale that it has from now on
    steps = [(before - after) / 1e-3 for before, after in zip(weights, model.weights, strict=True)]
    model.biases = biases

    def score(layer: int, place: tuple[int, ...], nudge: float) -> float:
        model.weights = [one.copy() for one in weights]
        model.weights[layer][place] += nudge
        found = model.score_one(rows[-1])
        assert found is not None
        return found

    for layer, step in enumerate(steps):
        for place in np.ndindex(*step.shape):
            slope = (score(layer, place, 1e-6) - score(layer, place, -1e-6)) / 2e-6
            assert step[place] == pytest.approx(slope, abs=1e-6)


def test_a_fault_is_judged_by_the_mean_over_all_of_it() -> None:
    network = make_network(1, 5, warm_up=10, length=10, between=10)
    first = network.faults[0]
    others = [name for name in network.names if name != first.sensor]

    def event(observation: int, **importance: float) -> dict[str, Any]:
        features = {name: {"importance": importance.get(name, 0.0)} for name in network.names}
        return {"explainer": "pfi", "observation": observation, "features": features}

    events = [event(n, **{fault.sensor: 1.0}) for fault in network.faults[1:] for n in (fault.begin + 1, fault.end)]
    # At its first touch another one is higher, and before and after it what it likes: that counts for nothing.
    events += [event(first.begin, **{others[0]: 99.0}), event(first.end + 1, **{others[0]: 99.0})]
    events += [event(first.begin + 1, **{others[1]: 3.0}), event(first.end, **{first.sensor: 4.0})]
    verdicts = judge(events, network)
    assert [verdict.rank for verdict in verdicts] == [1] * 5
    assert (verdicts[0].importance, verdicts[0].next_one, verdicts[0].next_sensor) == (2.0, 1.5, others[1])
    assert summary(verdicts) == "pfi: 5 of 5 faulty sensors first"
    assert first.sensor in table(1, verdicts)
    events.append(event(first.begin + 2, **{others[1]: 9.0}))
    verdicts = judge(events, network)
    assert [verdict.rank for verdict in verdicts] == [2, 1, 1, 1, 1]
    assert summary(verdicts).startswith("pfi: 4 of 5 faulty sensors first; missed: stuck 1")


def test_no_sensor_with_equal_importance_is_first() -> None:
    network = make_network(1, 5, warm_up=10, length=10, between=10)
    features = {name: {"importance": 0.0} for name in network.names}
    events = [{"explainer": "pfi", "observation": fault.end, "features": features} for fault in network.faults]
    assert {verdict.rank for verdict in judge(events, network)} == {5}


def test_its_state_can_be_stored() -> None:
    check_model("network", ModelConfig.model_validate(MODEL))


def test_a_worker_ranks_a_faulty_sensor_first() -> None:
    whole = make_network(1, 8, warm_up=700, length=150, between=0)
    spikes = whole.faults[4]
    end = spikes.begin + 150
    begin = whole.faults[0].begin
    # The spikes alone, right after the warm-up.
    readings = np.concatenate([whole.readings[:begin], whole.readings[spikes.begin : end]])
    fault = Fault(spikes.kind, spikes.sensor, begin, begin + 150)
    network = Network(whole.names, readings, [fault])
    explainers = {"pfi": {"n_samples": 2, "gap": 160}, "sage": {"n_samples": 5, "gap": 160}}
    model = {**MODEL, "model": {**MODEL["model"], "params": {"learning_rate": 0.01}}, "explainers": explainers}
    verdicts = judge(without_kafka(network, model=model), network)
    assert [(verdict.explainer, verdict.rank) for verdict in verdicts] == [("pfi", 1), ("sage", 1)]


def test_it_can_be_drawn(tmp_path: Path) -> None:
    from examples.sensor_network.drawing import draw

    network = make_network(1, 5, warm_up=10, length=10, between=10)
    features = {name: {"importance": 0.1} for name in network.names}
    events = [
        {"explainer": "pfi", "removal": "interventional", "observation": n, "features": features, "model_loss": 0.5}
        for n in (10, 20)
    ]
    draw(events, network, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert text.startswith("<?xml")

"""A monitor whom many threads of a service call at once: no observation is lost, and memory is bounded."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from river import naive_bayes, tree
from river.datasets import synth

from attributary_explainers import Monitor
from attributary_explainers.monitor.settings import PublishRule
from tests.explainers.monitor.test_monitor import value_of

N_THREADS = 8


def rows(n: int) -> list[tuple[dict[str, Any], Any]]:
    return [({"salary": x["salary"], "age": x["age"]}, y) for x, y in synth.Agrawal(seed=5).take(n)]


@pytest.mark.parametrize("max_waiting", [5, 10_000])
def test_no_count_is_lost_and_what_is_not_explained_is_counted(max_waiting: int) -> None:
    data = rows(800)
    sent: list[Any] = []
    monitor = Monitor(max_waiting=max_waiting)
    for name in ("a", "b"):
        model = tree.HoeffdingTreeClassifier()
        monitor.add(name, model, learn=True, change=None, publish=PublishRule(every=100, material_shift=1.0))
    monitor.publish_to(lambda *record: sent.append(record))
    most = 0

    def serve(number: int) -> None:
        nonlocal most
        for n in range(number, len(data), N_THREADS):
            x, y = data[n]
            name = "ab"[n % 2]
            monitor.predict(name, x, id=n)
            monitor.label(name, n, y)
            most = max(most, len(monitor._models[name].inbox))

    with ThreadPoolExecutor(N_THREADS) as pool:
        scraped = [value_of(monitor, "model_observations_total", model_id="a") for _ in range(3)]
        for done in [pool.submit(serve, number) for number in range(N_THREADS)]:
            done.result()
    monitor.close()
    assert scraped == sorted(scraped)
    assert most <= 2 * max_waiting + N_THREADS
    for name in ("a", "b"):
        assert value_of(monitor, "model_observations_total", model_id=name) == 400
        assert value_of(monitor, "labels_total", model_id=name, outcome="joined") == 400
        assert value_of(monitor, "label_delay_seconds_count", model_id=name) == 400
        model = monitor._models[name]
        explained = model.explainers["pfi"].n_observations + sum(model.explainers["pfi"].skipped.values())
        assert explained == 400
        assert model.explainers["pfi"].skipped["budget"] == model.n_not_explained
        assert value_of(monitor, "monitor_not_explained_total", model_id=name) == model.n_not_explained
    published = [value_of(monitor, "monitor_events_total", model_id=name, outcome="published") for name in "ab"]
    assert sum(published) == len(sent)
    if max_waiting > len(data):
        assert published == [4, 4]
        assert all(model.n_not_explained == 0 for model in monitor._models.values())


class Held(naive_bayes.GaussianNB):
    """Answers one caller at once, and lets explaining wait."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go, self.is_explained = threading.Event(), threading.Event()
        self.asked_by = threading.get_ident()

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        if threading.get_ident() != self.asked_by:
            self.is_explained.set()
            assert self.may_go.wait(60)
        return {True: 0.5, False: 0.5}


def test_an_answer_does_not_wait_for_an_explanation() -> None:
    model = Held()
    monitor = Monitor().add("m", model, learn=True, change=None, watch_loss=False)
    monitor.observe("m", {"a": 1.0}, True)
    assert model.is_explained.wait(60)  # the monitor's thread is in the middle of it
    assert monitor.predict("m", {"a": 1.0}, id="next") is True
    monitor.label("m", "next", False)
    model.may_go.set()
    monitor.close()
    assert value_of(monitor, "model_observations_total", model_id="m") == 2


def test_what_nobody_takes_is_taken_by_who_brings_it_and_is_not_explained() -> None:
    data = rows(60)
    monitor = Monitor(max_waiting=10).add("m", tree.HoeffdingTreeClassifier(), learn=True, change=None)
    assert monitor._background is not None
    monitor._background.close()
    for x, y in data:
        monitor.observe("m", x, y)
        assert len(monitor._models["m"].inbox) <= 20
    assert value_of(monitor, "monitor_not_explained_total", model_id="m") == 40
    assert value_of(monitor, "model_observations_total", model_id="m") == 40
    assert value_of(monitor, "monitor_waiting_observations", model_id="m") == 20
    monitor.flush()
    assert value_of(monitor, "model_observations_total", model_id="m") == 60

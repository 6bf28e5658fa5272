"""A monitor whom many threads of a service call at once: no observation is lost, and memory is bounded."""

from __future__ import annotations

import asyncio
import pickle
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

    def __reduce__(self) -> Any:
        return naive_bayes.GaussianNB, ()

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
    assert monitor._intake.background is not None
    monitor._intake.background.close()
    for x, y in data:
        monitor.observe("m", x, y)
        assert len(monitor._models["m"].inbox) <= 20
    assert value_of(monitor, "monitor_not_explained_total", model_id="m") == 40
    assert value_of(monitor, "model_observations_total", model_id="m") == 40
    assert value_of(monitor, "monitor_waiting_observations", model_id="m") == 20
    monitor.flush()
    assert value_of(monitor, "model_observations_total", model_id="m") == 60


class Slow(naive_bayes.GaussianNB):
    """Answers when the loop has gone on, and says so where it has not."""

    def __init__(self) -> None:
        super().__init__()
        self.loop_goes_on = threading.Event()

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        assert self.loop_goes_on.wait(60), "the loop waits for the model"
        return {True: 0.5, False: 0.5}


def test_a_coroutine_does_not_hold_up_its_loop() -> None:
    model = Slow()
    monitor = Monitor(max_waiting=1).add("m", model, learn=True, change=None, watch_loss=False)

    async def serve() -> Any:
        answering = asyncio.ensure_future(asyncio.to_thread(monitor.predict, "m", {"a": 1.0}, id="1"))
        await asyncio.sleep(0)
        model.loop_goes_on.set()
        answer = await answering
        await asyncio.to_thread(monitor.label, "m", "1", True)
        await asyncio.to_thread(monitor.flush)
        # An explanation is under way, and so many wait that whoever brings one more has to help.
        with monitor._models["m"].lock:
            for _ in range(2):
                await asyncio.to_thread(monitor.observe, "m", {"a": 1.0}, True)
            helping = asyncio.ensure_future(asyncio.to_thread(monitor.observe, "m", {"a": 1.0}, True))
            while len(monitor._models["m"].inbox) < 3:
                await asyncio.sleep(0)
            assert not helping.done()
        await helping
        await asyncio.to_thread(monitor.close)
        return answer

    assert asyncio.run(serve()) in (True, False)
    assert value_of(monitor, "model_observations_total", model_id="m") == 4


def test_answers_labels_and_snapshots_need_no_model_that_is_being_explained() -> None:
    model = Held()
    monitor = Monitor().add("m", model, learn=True, change=None, watch_loss=False)
    monitor.predict("m", {"a": 1.0}, id="early")
    monitor.observe("m", {"a": 1.0}, True)
    assert model.is_explained.wait(60)
    waiting: list[Any] = []
    taking = threading.Thread(target=lambda: waiting.append(monitor.snapshot()))
    taking.start()  # it waits for the observation that is under way, and nobody waits for it
    for n in range(5):
        assert monitor.predict("m", {"a": 1.0}, id=n) is True
        monitor.label("m", n, False)
    assert not waiting
    model.may_go.set()
    taking.join(60)
    monitor.close()
    assert waiting[0]["models"]["m"]["state"]["n_observations"] >= 1
    assert value_of(monitor, "model_observations_total", model_id="m") == 6


def test_snapshots_beside_requests_are_whole() -> None:
    data = rows(300)
    monitor = Monitor().add("m", tree.HoeffdingTreeClassifier(), learn=True, change=None)
    taken: list[bytes] = []
    done = threading.Event()

    def keep() -> None:
        while not done.is_set():
            taken.append(pickle.dumps(monitor.snapshot()))

    def serve(number: int) -> None:
        for n in range(number, len(data), N_THREADS):
            monitor.predict("m", data[n][0], id=n)
            monitor.label("m", n, data[n][1])

    keeping = threading.Thread(target=keep)
    keeping.start()
    with ThreadPoolExecutor(N_THREADS) as pool:
        for one in [pool.submit(serve, number) for number in range(N_THREADS)]:
            one.result()
    done.set()
    keeping.join()
    monitor.close()
    for snapshot in (*taken[:: max(len(taken) // 5, 1)], pickle.dumps(monitor.snapshot())):
        again = Monitor(in_background=False).add("m", tree.HoeffdingTreeClassifier(), learn=True, change=None)
        again.restore(pickle.loads(snapshot)).flush()
        joined = value_of(again, "labels_total", model_id="m", outcome="joined") or 0.0
        observed = value_of(again, "observations_observed_total", model_id="m") or 0.0
        assert value_of(again, "model_observations_total", model_id="m") == joined
        assert (value_of(again, "observations_waiting", model_id="m") or 0.0) == observed - joined
    assert joined == len(data)


class Teaching(naive_bayes.GaussianNB):
    """Is taught, while it is asked for the first time, by the thread of the monitor."""

    def __init__(self) -> None:
        super().__init__()
        self.monitor: Monitor | None = None

    def predict_proba_one(self, x: dict[str, Any]) -> dict[Any, float]:
        known: dict[Any, float] = super().predict_proba_one(x)
        if self.monitor is not None:
            monitor, self.monitor = self.monitor, None
            monitor.observe("m", {"a": 5.0}, False)
        return known


def test_an_answer_is_scored_as_it_was_given_though_the_model_was_taught_meanwhile() -> None:
    model = Teaching()
    for n in range(40):
        model.learn_one({"a": n % 4}, n % 4 > 1)
    monitor = Monitor(in_background=False).add(
        "m", model, change=None, watch_loss=False
    )  # as it is: asked by all at once
    learnt = {**model.predict_proba_one({"a": 1.0})}
    model.monitor = monitor
    monitor.predict("m", {"a": 1.0}, id=1)
    kept = monitor._models["m"].begin_joining()._waiting["1"]
    assert monitor._models["m"].n_observations == 1
    assert (kept.y_pred, kept.n_learnt) == (learnt, 0)


def test_a_publisher_may_call_the_monitor() -> None:
    sent: list[bytes] = []
    monitor = Monitor(in_background=False)
    monitor.add("m", tree.HoeffdingTreeClassifier(), learn=True, change=None, publish={"every": 10})

    def publish(_topic: str, _key: bytes, value: bytes, _headers: Any) -> None:
        sent.append(value)
        if len(sent) == 1:
            for x, y in rows(15):
                monitor.observe("m", x, y)
            monitor.replace("m", tree.HoeffdingTreeClassifier(), "2")
        monitor.snapshot()
        monitor.importances("m")

    monitor.publish_to(publish)
    for x, y in rows(15):
        monitor.observe("m", x, y)
    assert value_of(monitor, "model_observations_total", model_id="m") == 30
    assert len(sent) >= 2
    assert len(sent) == value_of(monitor, "monitor_events_total", model_id="m", outcome="published")


def test_a_model_that_is_busy_leaves_the_metrics_of_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attributary_explainers.monitor.service.collector._PATIENCE_S", 0.05)
    monitor = Monitor(in_background=False)
    for name in ("a", "b"):
        monitor.add(name, tree.HoeffdingTreeClassifier(), learn=True, change=None)
        monitor.observe(name, {"salary": 1.0}, 1)
    assert value_of(monitor, "model_observations_total", model_id="a") == 1
    with monitor._models["a"].lock:
        monitor.observe("b", {"salary": 2.0}, 0)
        assert value_of(monitor, "model_observations_total", model_id="a") == 1
        assert value_of(monitor, "model_observations_total", model_id="b") == 2

"""What a monitor is given wrongly is said at once, with what to do, and not at the first observation or snapshot."""

from __future__ import annotations

import datetime
import logging
import pickle
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from prometheus_client import CollectorRegistry
from river import anomaly, naive_bayes

from attributary_explainers import InvalidParameterError, Monitor
from attributary_explainers.monitor.series_limits import Limits
from attributary_explainers.monitor.settings import PublishRule
from tests.explainers.monitor.test_monitor import value_of

X = {"a": 1.0, "b": 2.0}


def watched(**settings: Any) -> Monitor:
    model = naive_bayes.GaussianNB()
    for a in range(4):
        model.learn_one({"a": a % 2, "b": a}, bool(a % 2))
    return Monitor(in_background=False).add("m", model, **settings)


async def _sends(*_: Any) -> None:
    """Send nothing."""


class _Sender:
    async def __call__(self, *_: Any) -> None:
        """Send nothing."""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"explainers": {"pfi": {"n_sample": 3}}}, "n_samples.*got 'n_sample': did you mean 'n_samples'"),
        ({"explainers": {"pfi": {"seed": 3}}}, "explainers.pfi must be without seed: that is given to add itself"),
        ({"explainers": {"pfi": None}}, "explainers.pfi must be a mapping"),
        ({"explainers": ["mdi"]}, "one of pfi, sage, got 'mdi'"),
        ({"explainers": 3}, "names of explainers: pfi, sage"),
        ({"change": {"windw": 100}}, "change must be made of .*window.*did you mean 'window'"),
        ({"change": {"seed": 1}}, "change must be without seed"),
        ({"change": 100}, "change must be a mapping"),
        ({"publish": {"evry": 3}}, "publish must be made of .*did you mean 'every'"),
        ({"publish": {"every": 0}}, r"publish.every must be an integer >= 1, got 0"),
        ({"publish": {"material_shift": 5}}, r"publish.material_shift must be a number > 0 and <= 1, got 5"),
        ({"version": 2}, "version must be a text"),
        ({"version": ""}, "version must be a text"),
        ({"mode": "mirror"}, "one of anomaly, labelled, unlabelled"),
        ({"mode": "unlabelled", "learn": True}, "nothing to learn from"),
    ],
)
def test_a_setting_that_is_none_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        watched(**settings)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Monitor([1]), "models must be a mapping of model ids to models"),
        (lambda: Monitor({7: naive_bayes.GaussianNB()}), "model_id must be a text"),
        (lambda: Monitor({"": naive_bayes.GaussianNB()}), "model_id must be a text that is not empty"),
        (lambda: Monitor({"a\nb": naive_bayes.GaussianNB()}), "no control characters"),
        (lambda: Monitor(topic_prefix="a b"), "topic_prefix must be a text of letters"),
        (lambda: Monitor(limits={"max_feature": 3}), "did you mean 'max_features'"),
        (lambda: Monitor(limits={"max_features": 0}), r"limits.max_features must be an integer >= 1"),
        (lambda: Monitor().publish_to([]), "publisher must be a function of topic, key, value and headers"),
        (lambda: Monitor().publish_to(_sends), r"no coroutine function.*run_coroutine_threadsafe"),
        (lambda: Monitor().publish_to(_Sender()), "no coroutine function"),
        (lambda: watched().observe("m", X), r"y must be the label.*predict\(…, id=…\).*mode='unlabelled'"),
        (lambda: watched(mode="unlabelled").predict("m", X, id=1), "id must be left out with mode='unlabelled'"),
        (lambda: watched().replace("m", naive_bayes.GaussianNB(), 2), "version must be a text"),
    ],
)
def test_what_cannot_work_is_refused(call: Any, said: str) -> None:
    with pytest.raises(InvalidParameterError, match=said):
        call()


def test_settings_can_be_mappings() -> None:
    monitor, sent = watched(publish={"every": 10}, explainers="sage"), []
    monitor.publish_to(lambda *record: sent.append(record))
    for n in range(30):
        monitor.observe("m", {"a": n % 2, "b": n}, bool(n % 2))
    assert len(sent) == 3
    assert set(monitor.importances("m")) == {"sage"}
    assert (
        watched(publish=PublishRule(every=10))._models["m"].settings
        == watched(publish={"every": 10})._models["m"].settings
    )
    assert Monitor(limits={"max_models": 3})._collector._limits == Limits(max_models=3)


@pytest.mark.parametrize(
    ("asked", "labelled"),
    [
        (17, "17"),
        ("17", np.int64(17)),
        (UUID(int=5), UUID(int=5)),
        (UUID(int=5), str(UUID(int=5))),
        (np.str_("a"), "a"),
        (2**70, 2**70),
    ],
)
def test_an_id_is_found_whatever_its_type(asked: Any, labelled: Any) -> None:
    monitor = watched()
    monitor.predict("m", X, id=asked)
    monitor.label("m", labelled, True)
    assert value_of(monitor, "labels_total", model_id="m", outcome="joined") == 1


@pytest.mark.parametrize("wrong", [1.5, 17.0, np.float64(17), b"17", True, ("a", 1), "", "a" * 1001, object()])
def test_what_is_no_id_is_refused_by_both(wrong: Any) -> None:
    monitor = watched()
    with pytest.raises(InvalidParameterError, match="id must be a text"):
        monitor.predict("m", X, id=wrong)
    with pytest.raises(InvalidParameterError, match="id must be a text"):
        monitor.label("m", wrong, True)
    with pytest.raises(InvalidParameterError, match="id must be a text"):
        monitor.label("m", None, True)


@pytest.mark.parametrize("wrong", [1.5, datetime.datetime(2026, 1, 1), -1, True, 1_700_000_000_000_000])
def test_what_is_no_time_is_refused_where_it_comes(wrong: Any) -> None:
    monitor = watched()
    for call in (
        lambda: monitor.predict("m", X, id=1, time_ms=wrong),
        lambda: monitor.label("m", 1, True, time_ms=wrong),
        lambda: monitor.observe("m", X, True, time_ms=wrong),
    ):
        with pytest.raises(InvalidParameterError, match="milliseconds since 1970"):
            call()
    monitor.predict("m", X, id=1, time_ms=np.int64(5))
    pickle.dumps(monitor.snapshot())
    assert value_of(monitor, "observations_waiting", model_id="m") == 1


def test_what_has_no_labels_is_observed_without() -> None:
    monitor = Monitor(in_background=False).add("net", anomaly.HalfSpaceTrees(), learn=True)
    monitor.observe("net", X)
    for call in (lambda: monitor.predict("net", X, id=1), lambda: monitor.label("net", 1, True)):
        with pytest.raises(InvalidParameterError, match="id must be left out with mode='anomaly'"):
            call()
    assert value_of(monitor, "model_observations_total", model_id="net") == 1


def test_a_wrong_label_in_the_data_is_counted_and_the_log_says_what_to_do(caplog: Any) -> None:
    caplog.set_level(logging.WARNING, logger="attributary_explainers.monitor")
    monitor = watched()
    monitor.observe("m", X, None)
    monitor.observe("m", X, float("nan"))
    assert value_of(monitor, "monitor_failures_total", model_id="m", reason="wrong_label") == 2
    assert [one.getMessage().count("give labels as the model's classes are written") for one in caplog.records] == [1]


def test_a_publisher_that_only_makes_a_coroutine_has_not_sent(caplog: Any) -> None:
    monitor = watched(publish={"every": 1}).publish_to(lambda *record: _sends(*record))
    monitor.observe("m", X, True)
    monitor.observe("m", X, True)
    assert value_of(monitor, "monitor_events_total", model_id="m", outcome="published") == 0
    failed = value_of(monitor, "monitor_events_total", model_id="m", outcome="failed")
    assert failed is not None
    assert failed >= 1
    assert sum("an event is not published" in one.getMessage() for one in caplog.records) == 1


def test_a_registry_refuses_a_second_monitor_whose_series_would_be_the_same() -> None:
    registry = CollectorRegistry()
    registry.register(watched().collector)
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(watched().collector)

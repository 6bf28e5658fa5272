"""Which features and models have series: never more than the limits, and without flapping."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.config.reading import parse_config
from attributary_agents.config.settings import Config
from attributary_agents.errors import PreflightError
from attributary_agents.kafka.observations import encode_value
from attributary_agents.monitoring.metrics import AttributaryCollector
from attributary_agents.monitoring.series_limits import check_series, most_series
from attributary_agents.worker.partition import Partition
from attributary_agents.worker.records import Record
from attributary_agents.worker.view import PartitionView, WorkerView
from attributary_explainers.monitor.series_limits import ShownFeatures, ShownModels
from tests.agents.stand_ins import TOPIC

_IMPORTANCES = st.dictionaries(st.sampled_from("abcdefghijkl"), st.floats(-1, 1), max_size=12)


def test_the_most_important_are_shown_in_order() -> None:
    shown = ShownFeatures(limit=2).choose("m", "pfi", {"a": 0.1, "b": 0.3, "c": 0.2})
    assert shown == ["b", "c"]


def test_a_feature_that_hovers_around_the_limit_keeps_its_series() -> None:
    features = ShownFeatures(limit=4)
    importance = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.9}
    assert features.choose("m", "pfi", importance) == ["a", "b", "c", "d"]
    assert features.choose("m", "pfi", {**importance, "e": 2.1}) == ["a", "b", "c", "d"]


def test_a_feature_that_falls_clearly_behind_makes_room() -> None:
    features = ShownFeatures(limit=4)
    importance = {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.9, "f": 1.8}
    features.choose("m", "pfi", importance)
    assert features.choose("m", "pfi", {**importance, "d": 0.0}) == ["a", "b", "c", "e"]


def test_a_model_that_left_is_forgotten() -> None:
    features = ShownFeatures(limit=1)
    features.choose("m", "pfi", {"a": 1.0, "b": 0.9})
    features.keep_only(set())
    assert features.choose("m", "pfi", {"a": 0.9, "b": 1.0}) == ["b"]


@given(st.lists(_IMPORTANCES, min_size=1, max_size=6), st.integers(1, 5))
def test_never_more_than_the_limit_and_as_many_as_there_are(rounds: list[dict[str, float]], limit: int) -> None:
    features = ShownFeatures(limit)
    for importance in rounds:
        shown = features.choose("m", "pfi", importance)
        assert len(shown) == len(set(shown)) == min(limit, len(importance))
        assert set(shown) <= set(importance)
        assert [importance[name] for name in shown] == sorted((importance[name] for name in shown), reverse=True)


def test_the_first_models_by_id_are_shown() -> None:
    assert ShownModels(2, 100).choose({"c": 1, "a": 1, "b": 1}) == {"a", "b"}


def test_a_model_keeps_its_series_when_others_come() -> None:
    models = ShownModels(2, 100)
    assert models.choose({"m": 1, "n": 1}) == {"m", "n"}
    assert models.choose({"a": 1, "m": 1, "n": 1}) == {"m", "n"}
    assert models.choose({"a": 1, "n": 1}) == {"a", "n"}, "m has left"
    assert models.choose({"a": 1, "m": 1, "n": 1}) == {"a", "n"}, "and has come back"


def test_a_rebalance_gives_models_the_series_back_that_they_had() -> None:
    models = ShownModels(2, 100)
    assert models.choose({"m": 1, "n": 1}) == {"m", "n"}
    assert models.choose({}) == set(), "a scrape in the middle of it"
    assert models.remembered == {"m", "n"}
    assert models.choose({"a": 1, "b": 1, "m": 1, "n": 1}) == {"m", "n"}
    for _ in range(9):
        assert len(models.choose({f"x{_}": 1, f"y{_}": 1})) == 2
    assert len(models.remembered) == 4, "those that have gone are forgotten some time"


def test_one_large_model_does_not_hide_the_small_ones() -> None:
    assert ShownModels(9, 10).choose({"a": 4, "b": 7, "c": 5}) == {"a", "c"}


def test_a_model_pushed_out_by_growth_comes_back_when_there_is_clearly_room() -> None:
    models = ShownModels(9, 100)
    assert models.choose({"a": 50, "b": 50}) == {"a", "b"}
    assert models.choose({"a": 51, "b": 50}) == {"a"}
    assert models.choose({"a": 50, "b": 50}) == {"a"}, "at the limit it would come and go"
    assert models.choose({"a": 40, "b": 50}) == {"a", "b"}
    assert models.choose({"a": 50, "b": 50}) == {"a", "b"}


_MODELS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9), max_size=8)


@given(st.lists(_MODELS, min_size=1, max_size=6), st.integers(1, 5), st.integers(1, 30))
def test_the_limits_hold_and_nobody_goes_without_need(rounds: list[dict[str, int]], most: int, series: int) -> None:
    models, before = ShownModels(most, series), set[str]()
    for n_series in rounds:
        shown = models.choose(n_series)
        assert shown <= n_series.keys()
        assert len(shown) <= most
        assert sum(n_series[model_id] for model_id in shown) <= series
        stayed = [model_id for model_id in before if model_id in n_series]
        if sum(n_series[model_id] for model_id in stayed) <= series:
            assert set(stayed) <= shown
        before = shown


def _config(n: int, features: int, **limits: int) -> Config:
    model = {
        "model": {"class": "river.linear_model.LogisticRegression"},
        "features": {f"f{i}": "number" for i in range(features)},
        "explainers": {"pfi": {}, "sage": {}},
        "change": {},
        "explain": {"budget": 0.5},
    }
    return parse_config({"models": {f"m{i}": model for i in range(n)}, "metrics": limits})


@pytest.mark.parametrize("features", [1, 5, 40])
def test_no_scrape_has_more_series_than_are_expected(features: int) -> None:
    config = _config(2, features)
    partition = Partition(TOPIC, 0, config, lambda _key: None)
    for i in range(60):
        x = {f"f{f}": float((i * (f + 3)) % 17) for f in range(features)}
        for model_id in config.models:
            value = encode_value({"x": x, "y": x["f0"] > 8})
            partition.handle(Record(TOPIC, 0, partition.offset + 1, 1000 + i, model_id.encode(), value))
    collector = AttributaryCollector(config, WorkerView({0: PartitionView(partition)}))
    found = [s for family in collector.collect() for s in family.samples if "model_id" in s.labels]
    of_features, others = most_series(config)
    n_of_features = sum("feature" in sample.labels for sample in found)
    assert of_features / 3 < n_of_features <= of_features
    assert others / 2 < len(found) - n_of_features <= others


def test_limits_that_no_scrape_can_carry_are_refused_with_the_key_to_set() -> None:
    check_series(_config(300, 8))
    lifted = {"max_models": 100_000, "max_series": 100_000_000, "max_features": 100_000}
    check_series(_config(300, 8, **lifted))
    with pytest.raises(PreflightError, match="max_series to ") as refused:
        check_series(_config(300, 100, **lifted))
    assert "\n" not in str(refused.value)
    most = int(re.findall("max_series to ([0-9]+)", str(refused.value))[0])
    check_series(_config(300, 100, **{**lifted, "max_series": most}))
    with pytest.raises(PreflightError, match="max_models to ") as refused:
        check_series(_config(2000, 4, **lifted))
    most = int(re.findall("max_models to ([0-9]+)", str(refused.value))[0])
    check_series(_config(2000, 4, **{**lifted, "max_models": most}))

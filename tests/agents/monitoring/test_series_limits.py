"""Which features and models have series: never more than the limits, and without flapping."""

from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.monitoring.series_limits import ShownFeatures, ShownModels

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

"""Which features have series: never more than the limit, the most important ones, and without flapping."""

from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.series_limits import ShownFeatures

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

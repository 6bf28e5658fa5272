"""What the store keeps of importance events, and gives back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from attributary_agents.serve.store.rows import Arrived
from attributary_agents.serve.store.store import Store

from .events import T0, importance, incident, letter, n_records, status


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as store:
        yield store


def test_an_event_that_comes_twice_changes_nothing_and_is_told_once(store: Store) -> None:
    events = [importance(T0 + n, n + 1) for n in range(5)]
    assert len(store.take(events)) == 5
    before = store.models(), store.position
    assert store.take([events[2], events[4]]) == []
    assert n_records(store, "importance") == 5
    assert store.position == before[1]
    assert store.models()[0].explainers[0].n_events == 5


def test_a_position_is_that_of_its_records(store: Store) -> None:
    store.take([importance(T0, 1)], {("importances", 0): 17})
    store.take([], {("importances", 1): 4, ("importances", 0): 18})
    assert store.positions() == {("importances", 0): 18, ("importances", 1): 4}


def test_when_the_last_event_was_taken_is_known_to_the_next_server(tmp_path: Path) -> None:
    path, now = tmp_path / "store.sqlite", T0 / 1000 + 5.0
    with Store(path, clock=lambda: now) as store:
        assert store.seen_ms is None
        store.take([importance(T0, 1)])
    with Store(path, clock=lambda: now + 60.0) as store:
        assert store.seen_ms == T0 + 5000


class TestNumbers:
    @pytest.mark.parametrize("size", [1e60, 1e300, 1.7e308, 1e-60, 1e-300])
    def test_very_large_and_small_ones_are_neither_infinite_nor_zero(self, store: Store, size: float) -> None:
        store.take([importance(T0, 1, {"a": size, "b": -size / 8, "c": 0.0}, half_width=size / 4, model_loss=size)])
        found = store.snapshot("bank", "pfi")
        assert found is not None
        np.testing.assert_allclose(found.importance, [size, 0.0, -size / 8], rtol=1e-6)
        np.testing.assert_allclose(found.half_width, [size / 4] * 3, rtol=1e-6)
        assert found.scalars["model_loss"] == size

    def test_bounds_beyond_all_floats_stay_finite(self, store: Store) -> None:
        store.take([importance(T0 + n, n + 1, {"a": 1.5e308, "b": 1.0}, half_width=1.5e308) for n in range(9)])
        found = store.window("bank", "pfi", points=2)
        assert found is not None
        for values in (found.importance, found.low, found.high):
            assert np.isfinite(values).all()
        np.testing.assert_allclose(found.importance[:, 0], 1.5e308, rtol=1e-6)

    def test_one_that_is_not_known_is_nan(self, store: Store) -> None:
        store.take([importance(T0, 1, half_width=None)])
        found = store.window("bank", "pfi")
        assert found is not None
        assert np.isnan(found.low).all()
        assert np.isnan(found.last_half_width).all()
        assert not np.isnan(found.importance).any()


class TestWhatBeginsAnew:
    """Events that are no comparable numbers are not mixed."""

    def test_another_loss_has_windows_of_its_own(self, store: Store) -> None:
        store.take([importance(T0 + n, n + 1, loss="brier") for n in range(3)])
        store.take([importance(T0 + n, n + 1, loss="cross-entropy") for n in range(10, 14)])
        found, earlier = store.window("bank", "pfi"), store.window("bank", "pfi", end=T0 + 5)
        assert found is not None
        assert earlier is not None
        assert (found.n_events, earlier.n_events) == (4, 3)
        explainer = store.models()[0].explainers[0]
        assert (explainer.loss, explainer.n_events) == ("cross-entropy", 4)
        before, now = store.snapshot("bank", "pfi", time_ms=T0 + 5), store.snapshot("bank", "pfi")
        assert before is not None
        assert now is not None
        assert (before.loss, now.loss) == ("brier", "cross-entropy")

    def test_by_observation_a_model_that_begins_anew_is_shown_since_then(self, store: Store) -> None:
        store.take([importance(T0 + n, 500 * (n + 1)) for n in range(8)])
        store.take([importance(T0 + n, 500 * (n - 7)) for n in range(8, 11)])
        found = store.window("bank", "pfi", by="observation")
        assert found is not None
        assert found.observation.tolist() == [500, 1000, 1500]
        assert found.time_ms.tolist() == [T0 + 8, T0 + 9, T0 + 10]
        earlier = store.window("bank", "pfi", by="observation", start=3000)
        assert earlier is not None
        assert earlier.observation.tolist() == [3000, 3500, 4000]
        by_time = store.window("bank", "pfi")
        assert by_time is not None
        assert by_time.n_events == 11
        explainer = store.models()[0].explainers[0]
        assert (explainer.first_observation, explainer.last_observation) == (500, 1500)

    def test_what_comes_late_does_not_begin_anew(self, store: Store) -> None:
        store.take([importance(T0 + n, 500 * n) for n in (1, 2, 4, 5)])
        store.take([importance(T0 + 3, 1500), importance(T0 + 6, 3000)])
        found = store.window("bank", "pfi", by="observation")
        assert found is not None
        assert found.observation.tolist() == [500, 1000, 1500, 2000, 2500, 3000]

    def test_a_model_that_went_back_goes_on_counting(self, store: Store) -> None:
        store.take([importance(T0 + n, 500 * n) for n in (1, 2)])
        store.take([incident("r", T0 + 3, what="recovered")])
        store.take([importance(T0 + n, 500 * n) for n in (4, 5)])
        found = store.window("bank", "pfi", by="observation")
        assert found is not None
        assert found.observation.tolist() == [500, 1000, 2000, 2500]

    def test_versions_are_told_apart_the_newest_first(self, store: Store) -> None:
        store.take([importance(T0 + n, n, version="1") for n in (1, 2, 3)])
        store.take([importance(T0 + n, n, version="2") for n in (4, 5)])
        assert [
            (one.version, one.first_observation, one.last_observation, one.first_ms, one.last_ms)
            for one in store.versions("bank")
        ] == [("2", 4, 5, T0 + 4, T0 + 5), ("1", 1, 3, T0 + 1, T0 + 3)]


class TestModels:
    def test_say_what_the_latest_event_of_each_explainer_says(self, store: Store) -> None:
        store.take([importance(T0 + n, n, {"age": 1.0 * n, "salary": 2.0}, explainer="sage") for n in (1, 2, 3)])
        store.take([importance(T0 + 9, 3, explainer="pfi", quality={"f1": (0.5, None), "accuracy": (0.75, 0.5)})])
        store.take([status(T0 + 20, "changed"), importance(T0, 1, model_id="bikes")])
        assert [model.model_id for model in store.models()] == ["bank", "bikes"]
        bank = store.model("bank")
        assert bank is not None
        assert (bank.status["state"], bank.status_ms, bank.last_ms) == ("changed", T0 + 20, T0 + 9)
        pfi, sage = bank.explainers
        assert (pfi.explainer, pfi.quality) == ("pfi", ("accuracy", "f1"))
        assert sage.features == ("age", "salary")
        assert sage.importance.tolist() == [3.0, 2.0]
        assert (sage.first_ms, sage.last_ms, sage.last_observation) == (T0 + 1, T0 + 3, 3)
        assert store.model("bnak") is None

    def test_are_up_to_date_after_each_transaction(self, store: Store) -> None:
        for n in range(1, 4):
            store.take([importance(T0 + n, n)])
            assert store.models()[0].explainers[0].n_events == n

    def test_of_shards_what_they_say_together(self, store: Store) -> None:
        store.take([status(T0, "explained", partition=0), status(T0 + 5, "changed", partition=1)])
        store.take([status(T0 - 3_600_000, "refused", partition=2)])  # left behind long ago
        model = store.model("bank")
        assert model is not None
        assert (model.status["state"], model.status["n_observations"]) == ("changed", 18)

    def test_are_there_while_only_an_incident_or_a_status_is(self, store: Store) -> None:
        store.take([incident("c", T0), status(T0, model_id="bikes"), letter("l", T0, model_id="typo")])
        assert [model.model_id for model in store.models()] == ["bank", "bikes"]
        store.take([Arrived("status", 0, 1, "bikes", "bikes", T0 + 1, {})])  # deleted from a compacted topic
        assert [model.model_id for model in store.models()] == ["bank"]


class TestMoments:
    def test_of_a_snapshot_is_the_last_event_at_or_before(self, store: Store) -> None:
        store.take([importance(T0 + 1000 * n, 500 * n, {"a": float(n), "b": 0.5}) for n in (1, 2, 3)])

        def at(**moment: int) -> int:
            found = store.snapshot("bank", "pfi", **moment)
            assert found is not None
            assert found.importance[0] == found.observation / 500
            return found.observation

        assert at() == 1500
        assert at(time_ms=T0 + 2999) == 1000
        assert at(observation=1499) == 1000
        assert at(observation=1) == at(time_ms=5) == 500
        assert store.snapshot("bank", "sage") is None

    def test_the_nearest_event_is_found_on_both_sides(self, store: Store) -> None:
        store.take([importance(T0 + 1000 * n, 500 * n) for n in (1, 2, 9)])
        assert store.nearest("bank", "pfi", T0 + 4000, "time") == (T0 + 2000, 1000)
        assert store.nearest("bank", "pfi", T0 + 8000, "time") == (T0 + 9000, 4500)
        assert store.nearest("bank", "pfi", 1, "observation") == (T0 + 1000, 500)
        assert store.nearest("bank", "sage", 1, "observation") is None

    def test_recent_figures_are_those_of_the_last_event_of_each_width(self, store: Store) -> None:
        store.take([importance(T0 + n, n + 1, shift=float(n)) for n in range(8)])
        assert store.recent("bank", "pfi", "shift", start=None, points=4) == [1.0, 3.0, 5.0, 7.0]
        assert store.recent("bank", "pfi", "shift", start=T0 + 6, points=4) == [6.0, 7.0]
        assert store.recent("bank", "pfi", "ndcg", start=T0 + 6, points=1) == [None]
        assert store.recent("bank", "sage", "shift", start=None, points=4) == []

    def test_recent_figures_are_of_equal_widths_of_time(self, store: Store) -> None:
        times = [T0 + n * n for n in range(100)]
        store.take([importance(t, n + 1, shift=float(n)) for n, t in enumerate(times)])
        start, n_points = times[10], 4
        width = (times[-1] - start + 1) / n_points
        last = {int((t - start) / width): float(n) for n, t in enumerate(times) if t >= start}
        assert store.recent("bank", "pfi", "shift", start=start, points=n_points) == list(last.values())
        empty_from = times[-1] + 1
        assert store.recent("bank", "pfi", "shift", start=empty_from, points=n_points) == []
        assert store.recent("bank", "pfi", "ndcg", start=None, points=2) == [None, None]

    def test_without_times_recent_figures_are_by_observation(self, store: Store) -> None:
        store.take([importance(None, n + 1, shift=float(n)) for n in range(8)])
        assert store.recent("bank", "pfi", "shift", start=None, points=4) == [1.0, 3.0, 5.0, 7.0]

    def test_the_first_of_which_half_widths_are_known_is_found(self, store: Store) -> None:
        events = [importance(T0 + n, n + 1, half_width=None if n < 3 else 0.5) for n in range(8)]
        store.take(events)
        assert store.first_known("bank", "pfi", ("age", "salary"), points=100) == 4
        assert store.first_known("bank", "pfi", ("age",), points=2) == 4
        assert store.first_known("bank", "pfi", ("city",), points=4) == 2
        assert store.first_known("bank", "sage", ("age",), points=4) is None


def test_quality_is_put_together_like_the_other_figures(store: Store) -> None:
    store.take([importance(T0 + n, n + 1, quality={"f1": (n / 8, 0.5)}) for n in range(4)])
    store.take([importance(T0 + n, n + 1, quality={"f1": (None, 0.5), "mcc": (0.25, None)}) for n in range(4, 8)])
    found = store.window("bank", "pfi", points=2)
    assert found is not None
    np.testing.assert_allclose(found.quality["f1"], [1.5 / 8, math.nan])
    np.testing.assert_allclose(found.quality["mcc"], [math.nan, 0.25])
    np.testing.assert_allclose(found.quality_reference["f1"], [0.5, 0.5])


def test_of_each_feature_the_latest_dependence_is_kept(store: Store) -> None:
    def curve(t: int, observation: int, feature: str, mean: float) -> Arrived:
        said = {
            "event": "dependence",
            "model_id": "bank",
            "model_version": "1",
            "explainer": "pdp",
            "feature": feature,
            "kind": "number",
            "label": None,
            "values": [1.0],
            "mean": [mean],
            "half_width": [None],
            "observation": observation,
            "n_observations": observation,
            "source": {"topic": "o", "partition": 0, "offset": observation},
        }
        return Arrived("importance", 0, 0, f"{t}", "bank", t, said)

    store.take([curve(T0 + 2, 9, "age", 0.5), curve(T0 + 1, 5, "age", 0.25), curve(T0 + 1, 5, "city", 0.125)])
    found = [(one["feature"], one["mean"], one["time_ms"]) for one in store.dependences("bank")]
    assert found == [("age", [0.5], T0 + 2), ("city", [0.125], T0 + 1)]


class TestDeadLetters:
    def test_are_counted_once_each_by_reason(self, store: Store) -> None:
        store.take([letter(f"o:0:{n % 3}", T0 + n) for n in range(6)])
        store.take([letter("o:0:9", T0 + 99, "wrong_type"), letter("o:0:9", T0 + 99, "wrong_type")])
        found = [(one.reason, one.stage, one.n, one.first_ms, one.last_ms) for one in store.dead_letters("bank")]
        assert found == [("invalid_json", "decode", 3, T0, T0 + 2), ("wrong_type", "decode", 1, T0 + 99, T0 + 99)]
        assert store.dead_letters("bank", start_ms=T0 + 50)[0].n == 1
        assert n_records(store, "dead_letter") == 4

    def test_are_told_at_most_once_a_second(self) -> None:
        now = [1000.0]
        with Store(clock=lambda: now[0]) as store:
            first = store.take([letter("a", T0), letter("b", T0), letter("c", T0, model_id="bikes")])
            assert [json.loads(one.data) for one in first] == [{"bank": 2, "bikes": 1}]
            now[0] += 0.5
            assert store.take([letter("d", T0)]) == []
            untold = [store.has_untold]
            now[0] += 0.5
            assert [*untold, store.has_untold] == [False, True]
            assert [json.loads(one.data) for one in store.take([])] == [{"bank": 1}]

"""The feed of live events: what it says, and for how long."""

from __future__ import annotations

import json
from pathlib import Path

from attributary_agents.serve.store import writer
from attributary_agents.serve.store.store import Store

from .events import T0, importance, incident, n_records, status

NAMED = ("model_id", "explainer", "time_ms", "observation", "version", "n_features", "n_observations")
FIGURES = ("model_loss", "baseline_loss", "present_loss", "discrepancy", "shift", "n_waiting", "n_expired", "fidelity")


def test_an_importance_says_what_a_page_draws() -> None:
    with Store() as store:
        (told,) = store.take([importance(T0, 9, {"age": -1.0, "salary": 3.0, "city": 1.0}, shift=0.123456789)])
        said = json.loads(told.data)
        assert sorted(said) == sorted((*NAMED, *FIGURES, "features"))
        assert said["features"] == {
            "salary": [3.0, 0.5, 0.75, 1],
            "city": [1.0, 0.5, 0.25, 2],
            "age": [-1.0, 0.5, 0.0, 3],
        }
        assert list(said["features"]) == ["salary", "city", "age"]
        assert (said["time_ms"], said["observation"], said["shift"]) == (T0, 9, 0.123457)


def test_of_many_features_the_most_important_are_told() -> None:
    with Store() as store:
        (told,) = store.take([importance(T0, 9, {f"f{n:03}": float(n) for n in range(200)})])
        said = json.loads(told.data)
        assert list(said["features"]) == [f"f{n:03}" for n in range(199, 149, -1)]
        assert said["n_features"] == 200


def test_a_status_is_told_where_it_says_something_new() -> None:
    with Store() as store:
        (told,) = store.take([status(T0)])
        assert json.loads(told.data) == {
            "model_id": "bank",
            "version": "1",
            "state": "explained",
            "n_observations": 9,
            "observations_per_second": None,
            "n_waiting": None,
            "n_expired": None,
            "n_refused": None,
            "guard": None,
        }
        assert store.take([status(T0 + 5), status(T0 - 5, "learning")]) == []
        assert len(store.take([status(T0 + 9, "changed")])) == 1


def test_a_status_whose_guard_is_none_is_passed_over() -> None:
    guard = {"since": None, "waits_for": {"name": "labels 1", "n": 6, "needed": 30}, "reach": None, "sentence": "so"}
    with Store() as store:
        for wrong in ("so", {**guard, "sentence": 1}, {**guard, "waits_for": {"n": 6}}, {"sentence": "so"}):
            assert store.take([status(T0, guard=wrong)]) == []
        (told,) = store.take([status(T0, guard=guard)])
        assert json.loads(told.data)["guard"] == guard


def test_what_was_missed_is_repeated_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store(path) as store:
        first = store.take([importance(T0 + n, n + 1) for n in range(3)])
    with Store(path) as store:
        assert store.position == first[-1].id
        more = store.take([incident("c", T0)])
        assert more[0].id == first[-1].id + 1
        assert store.live(first[0].id) == [*first[1:], *more]
        assert store.live(more[0].id) == []
        assert store.live(first[0].id - 1) == [*first, *more]
        assert store.live(0) is None
        assert store.live(more[0].id + 1) is None  # of another store
        assert store.live(first[0].id, last=2) is None
        assert store.live(first[0].id - 2) is None


def test_only_the_last_are_kept() -> None:
    with Store() as store:
        told = store.take([importance(T0 + n, n + 1, {"a": 1.0}) for n in range(writer.KEPT // 4)])
        for _ in range(4):
            told += store.take([status(T0 + len(told) + n, str(n)) for n in range(writer.KEPT // 4)])
        kept = store.live(told[-1].id - writer.KEPT)
        assert kept == told[-writer.KEPT :]
        assert store.live(told[-1].id - writer.KEPT - 1) is None
        assert store.live(0) is None


def test_they_take_a_share_of_the_file_alone() -> None:
    with Store(max_bytes=10**7) as store:
        told = store.take([incident(f"{n}", T0 + n, sentence="x" * 5000) for n in range(300)])
        store.trim(T0)
        kept = sum(store.live(one.id) is not None for one in told)
        assert 40 < kept <= 100
        assert store.live(told[-1].id) == []


def test_a_long_past_is_told_by_one_word() -> None:
    with Store() as store:
        assert store.take([importance(T0 + n, n + 1) for n in range(3)], live=False) == []
        (told,) = store.reload()
        assert (told.event, told.data) == ("reload", b"{}")
        assert store.live(told.id - 1) == [told]


def test_after_all_was_dropped_ids_go_on_and_pages_are_told_to_ask_again() -> None:
    with Store() as store:
        told = store.take([importance(T0 + n, n + 1) for n in range(3)], {("importances", 0): 3})
        store.forget()
        assert (store.models(), store.positions(), n_records(store, "importance")) == ([], {}, 0)
        assert store.live(told[0].id) is None
        found = store.live(told[-1].id)
        assert found is not None
        assert [(one.id, one.event) for one in found] == [(told[-1].id + 1, "reload")]

"""The store stays small: old events are dropped, and the oldest where it is too much."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attributary_agents.serve.store.rows import Arrived
from attributary_agents.serve.store.store import Store

from .events import T0, importance, incident, letter, n_records, status

MINUTE_MS = 60_000


@pytest.fixture
def store() -> Iterator[Store]:
    with Store(clock=lambda: T0 / 1000) as store:
        yield store


def rows(n: int, **more: object) -> list[Arrived]:
    """Return events, one a minute, the last one at T0."""
    return [
        importance(T0 - (n - 1 - at) * MINUTE_MS, at + 1, {"a": at / 8, "b": 1.0}, **more)  # type: ignore[arg-type]
        for at in range(n)
    ]


class TestAge:
    def test_what_is_too_old_goes_and_is_not_taken_again(self, tmp_path: Path) -> None:
        with Store(tmp_path / "s", max_age_s=3600, clock=lambda: T0 / 1000) as store:
            events = rows(100)
            store.take([*events, incident("old", T0 - 7_200_000), incident("new", T0 - 60_000)])
            store.take([letter("l", T0 - 3 * 3_600_000), letter("m", T0)])
            store.trim(T0)
            found = store.window("bank", "pfi", points=1000)
            assert found is not None
            assert found.time_ms[0] == T0 - 60 * MINUTE_MS
            assert n_records(store, "importance") == 61
            assert store.models()[0].explainers[0].first_ms == T0 - 60 * MINUTE_MS
            assert store.models()[0].explainers[0].first_observation == 40
            assert [one.id for one in store.incidents()] == ["new"]
            assert n_records(store, "dead_letter") == 1
            assert store.take(events) == []

    def test_events_of_another_century_are_kept(self, store: Store) -> None:
        store.take([importance(10**9 + n, n + 1) for n in range(5)])
        store.trim(T0)
        assert n_records(store, "importance") == 5

    def test_a_model_that_nothing_comes_of_goes_and_pages_are_told(self, tmp_path: Path) -> None:
        now = [T0 / 1000]
        with Store(tmp_path / "s", max_age_s=3600, clock=lambda: now[0]) as store:
            store.take([*rows(3), importance(T0, 1, model_id="bikes"), status(T0)])
            now[0] += 4000
            store.take([importance(int(now[0] * 1000), 2, model_id="bikes")])
            store.trim(int(now[0] * 1000))
            assert [model.model_id for model in store.models()] == ["bikes"]
            assert store.versions("bank") == []
            assert store.has_untold
            assert [(one.event, one.model_id) for one in store.take([])] == [("gone", "bank")]

    def test_a_version_whose_events_are_gone_goes_too(self, tmp_path: Path) -> None:
        with Store(tmp_path / "s", max_age_s=3600, clock=lambda: T0 / 1000) as store:
            events = rows(100)
            store.take([importance(e.time_ms, n + 1, version=f"{n // 25}") for n, e in enumerate(events)])
            store.trim(T0)
            assert [one.version for one in store.versions("bank")] == ["3", "2", "1"]


class TestSize:
    @pytest.mark.long
    def test_the_file_is_bounded_and_the_newest_are_left(self, tmp_path: Path) -> None:
        draw = random.Random(1)
        event = importance(T0, 1, {f"feature-{n}": draw.random() for n in range(100)})
        most = 10**7
        with Store(tmp_path / "s", max_bytes=most) as store:
            sizes = []
            for at in range(0, 24_000, 2000):
                store.take(
                    [
                        replace(
                            event,
                            model_id=f"m{n % 3}",
                            time_ms=T0 + n * 1000,
                            event={**event.event, "observation": n + 1},
                        )
                        for n in range(at, at + 2000)
                    ],
                    live=False,
                )
                store.trim(T0 + (at + 2000) * 1000)
                sizes.append(store.size())
            assert max(sizes) <= most
            assert sizes[-1] > most // 2
            found = [store.window(f"m{n}", "pfi", points=1) for n in range(3)]
            starts = [model.explainers[0].first_ms or 0 for model in store.models()]
            assert all(one is not None and one.n_events > 100 for one in found)
            assert min(starts) > T0 + 10_000_000
            assert max(starts) - min(starts) <= 3_600_000
            assert [model.explainers[0].last_ms for model in store.models()] == [
                T0 + n * 1000 for n in (23_997, 23_998, 23_999)
            ]

    def test_many_incidents_are_bounded_too(self, tmp_path: Path) -> None:
        most = 10**7
        with Store(tmp_path / "s", max_bytes=most) as store:
            for at in range(8):
                store.take(
                    [incident(f"{at}-{n}", T0 + at * 1000 + n, sentence="x" * 5_000) for n in range(200)],
                    live=False,
                )
                store.trim(T0 + at * 1000)
                assert store.size() <= most
            assert store.incidents(last=1)[0].id == "7-199"

"""The store against a naive one: the same windows, whatever comes in whatever order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attributary_agents.serve.store.rows import SCALARS, Arrived
from attributary_agents.serve.store.store import Store

from .events import T0, importance
from .naive import Naive, bounds_of, mean_of, scalar_of, standing_of

NAMES = ("age", "city", "élan", "salary")
EIGHTHS = st.integers(-40, 40).map(lambda n: n / 8)  # which seven digits hold exactly


@st.composite
def arrivals(draw: st.DrawFn) -> Arrived:
    features = draw(st.dictionaries(st.sampled_from(NAMES), EIGHTHS, min_size=1))
    return importance(
        T0 + draw(st.integers(0, 30)) * 1000,
        draw(st.integers(1, 20)) * 50,
        features,
        explainer=draw(st.sampled_from(("pfi", "sage"))),
        loss=draw(st.sampled_from(("a", "a", "b"))),
        half_width=draw(st.sampled_from((None, 0.25, 1.0))),
        shift=draw(st.none() | EIGHTHS),
    )


def test_of_very_many_events_every_other_one_is_read_and_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [importance(T0 + 1000 * n, 50 * (n + 1), {"age": float(n * n % 17), "city": 1.0}) for n in range(35)]
    monkeypatch.setattr("attributary_agents.serve.store.store.MOST_READ", 10)
    naive = Naive()
    naive.take([one for n, one in enumerate(events, start=1) if n == 1 or (35 - n) % 4 == 0])
    with Store() as store:
        store.take(events)
        found = store.window("bank", "pfi", points=5, features=("age",))
    wanted = naive.window("bank", "pfi", T0, T0 + 35_000, "time", 5)
    assert found is not None
    assert wanted is not None
    assert wanted[0].pop(0).t == T0  # not read itself: it only is where the first width begins
    assert found.n_events == 35
    column = [found.features[at] for at in found.shown].index("age")
    np.testing.assert_allclose(found.importance[:, column], [mean_of(point, "age") for point in wanted])
    assert found.time_ms.tolist() == [point[-1].t for point in wanted]


@st.composite
def questions(draw: st.DrawFn) -> dict[str, Any]:
    by = draw(st.sampled_from(("time", "observation")))
    one, other = (draw(st.integers(-1, 31)) for _ in range(2))
    low, high = sorted((one, other))
    first, step = (T0, 1000) if by == "time" else (0, 40)
    return {"by": by, "start": first + low * step, "end": first + high * step, "points": draw(st.integers(1, 12))}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store") / "store.sqlite")


CASES = {
    "batches": st.lists(st.lists(arrivals(), max_size=12), min_size=1, max_size=4),
    "asked": st.lists(questions(), min_size=1, max_size=4),
    "explainer": st.sampled_from(("pfi", "sage")),
    "top": st.integers(0, 4),
}


@settings(max_examples=40)
@given(**CASES)
def test_windows_are_those_of_a_naive_store(store: Store, **case: Any) -> None:
    check(store, **case)


@pytest.mark.long
@settings(max_examples=500)
@given(**CASES)
def test_windows_are_those_of_a_naive_store_in_many_cases(store: Store, **case: Any) -> None:
    check(store, **case)


def check(store: Store, batches: list[list[Arrived]], asked: list[dict[str, Any]], explainer: str, top: int) -> None:
    store.forget()
    naive = Naive()
    for batch in batches:
        assert len(store.take([*batch, *batch[:3]])) == naive.take([*batch, *batch[:3]])
    for question in asked:
        wanted = naive.window("bank", explainer, **question)
        found = store.window("bank", explainer, **question, top=top, features=("city", "unheard of"))
        if wanted is None:
            assert found is None
            continue
        assert found is not None
        assert found.n_events == sum(len(point) for point in wanted)
        assert found.time_ms.tolist() == [point[-1].t for point in wanted]
        assert found.observation.tolist() == [point[-1].observation for point in wanted]
        last = wanted[-1][-1]
        by_rank = sorted(last.features, key=lambda name: standing_of(last, name)[1])
        known = {name for point in wanted for one in point for name in one.features}
        assert found.features == (*by_rank, *sorted(known - set(by_rank)))
        shown = [found.features[at] for at in found.shown]
        assert shown == list(dict.fromkeys([*by_rank[:top], *({"city"} & known)]))
        for column, name in enumerate(shown):
            np.testing.assert_allclose(found.importance[:, column], [mean_of(point, name) for point in wanted])
            bounds = [bounds_of(point, name) for point in wanted]
            np.testing.assert_allclose(found.low[:, column], [low for low, _ in bounds])
            np.testing.assert_allclose(found.high[:, column], [high for _, high in bounds])
            standing = [standing_of(point[-1], name) for point in wanted]
            np.testing.assert_allclose(found.share[:, column], [share for share, _ in standing])
            assert found.rank[:, column].tolist() == [rank for _, rank in standing]
        for name in SCALARS:
            np.testing.assert_allclose(found.scalars[name], [scalar_of(point, name) for point in wanted])

"""Observations taken in by one compiled call: importances and snapshots are those of Python, to the last bit."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from river import linear_model, naive_bayes, preprocessing

from attributary_explainers import GeometricReservoir, IncrementalPFI, IncrementalSAGE, LaggedReservoir
from attributary_explainers.compiled import is_compiling
from attributary_explainers.incremental import at_once
from attributary_explainers.incremental.at_once import AtOnce
from attributary_explainers.incremental.together import Explainers
from attributary_explainers.meanwhile import waiting

from ..fast_paths.streams import blobs, line

N = 150
ODD: dict[int, Any] = {60: np.str_("b"), 70: "never seen", 80: None, 90: float("nan"), 95: ["no label"]}
"""Labels and targets at some observations, which are mostly left to Python."""


def of_late_classes(n: int) -> list[tuple[dict[str, Any], Any]]:
    return [(x, y if i > n // 2 or y == "a" else "b") for i, (x, y) in enumerate(blobs(n, labels=("a", "b", "c")))]


CASES: dict[str, tuple[Callable[[], Any], Callable[[int], Any], str]] = {
    "numbers": (lambda: preprocessing.StandardScaler() | linear_model.LinearRegression(), line, "squared"),
    "classes": (naive_bayes.GaussianNB, of_late_classes, "brier"),
}


RESERVOIRS: dict[str, Callable[[], Any]] = {
    "with a gap": lambda: LaggedReservoir(20, 2, 30),
    "without a gap": lambda: GeometricReservoir(20),  # the mean prediction includes that for the observation
}


class StoresItsOwnWay(IncrementalSAGE):
    """Another class than the package's, which does more when it stores."""

    stored = 0

    def _store(self, x: Any, y_pred: Any) -> None:
        self.stored += 1
        super()._store(x, y_pred)


def explained(name: str, kind: Callable[..., Any], reservoir: Callable[[], Any], *, wanted: bool = True) -> list[Any]:
    """What two explainers of a model say of a stream, and their bytes, continued by one that is restored.

    They are asked afterwards where what explaining returns is not wanted.
    """
    make, stream, loss = CASES[name]
    model = make()
    ours: dict[str, Any] = {
        of: kind(model, loss=loss, alpha=0.02, n_samples=n, seed=1, reservoir=reservoir())
        for of, n in (("one", 2), ("other", 3))
    }
    both = Explainers(model, ours)
    found: list[Any] = []
    for i, (x, y) in enumerate(stream(N)):
        given = ODD.get(i, y)
        try:
            if i % 50 == 49:
                both.skip(x)
            both.predict(x)
            said = both.explain(given, wanted=wanted)
            said = said if wanted else {of: one.importance for of, one in ours.items()}
            found.append(repr((said, ours["one"].latest_increments[1].tolist())))
        except Exception as error:  # noqa: BLE001 - what is raised is compared
            found.append(repr(error))
        if i % 40 == 20:
            found.append([pickle.dumps(one.snapshot()) for one in ours.values()])
        if i == 100:
            ours = {of: kind.from_snapshot(one.snapshot(), model) for of, one in ours.items()}  # type: ignore[attr-defined]
            both = Explainers(model, ours)
        if i == 120:
            assert copy.deepcopy(ours["one"])._at_once is None
        model.learn_one(x, y)
    return [*found, *(pickle.dumps(one.snapshot()) for one in ours.values())]


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("reservoir", RESERVOIRS.values(), ids=RESERVOIRS)
def test_what_is_taken_in_at_once_is_what_python_takes_in(
    reservoir: Callable[[], Any], name: str, kind: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, update = [0], AtOnce.update

    def counted(at_once: AtOnce, *given: Any) -> Any:
        found = update(at_once, *given)
        taken[0] += found is not None
        return found

    with waiting():
        monkeypatch.setattr(AtOnce, "update", counted)
        at_once = explained(name, kind, reservoir)
        assert taken[0] > 2 * N * 0.8 or not is_compiling()
        assert at_once == explained(name, kind, reservoir, wanted=False)
        monkeypatch.setattr(AtOnce, "update", lambda *_: None)
        assert at_once == explained(name, kind, reservoir)


@pytest.mark.parametrize("kind", [IncrementalPFI, IncrementalSAGE])
@pytest.mark.parametrize("name", list(CASES))
def test_what_follows_the_importance_is_as_python_does_it(
    name: str, kind: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def followed() -> list[Any]:
        make, stream, loss = CASES[name]
        model = make()
        # Predictions enter the mean five at a time, and one observation in ten is looked at by slow features.
        one = kind(model, loss=loss, alpha=0.005, n_samples=2, seed=1, reservoir=LaggedReservoir(20, 50, 90))
        found = []
        for i, (x, y) in enumerate(stream(360)):
            if i % 100 == 99:
                one.pass_over(x)
            found.append(repr(one.explain_one(x, y)))
            if i % 30 == 20:
                found.append(repr((one.locality, pickle.dumps(one.snapshot()))))
            model.learn_one(x, y)
        return [*found, pickle.dumps(one.snapshot()), repr(one.locality)]

    done: list[int] = []
    for owner, kernel in (("take_growth", at_once.take_growth), ("take_walk", at_once.take_walk)):

        def counted(*given: Any, kernel: Any = kernel) -> int:
            done.append(kernel(*given))
            return done[-1]

        monkeypatch.setattr(at_once, owner, counted)
    with waiting():
        by_kernel = followed()
        print("COUNT", Counter(done))
        n_done = Counter(done)[at_once._DONE] + Counter(done)[at_once._STORED]
        least = 200 if name == "classes" else 100  # rows with a bool are stored by Python
        assert is_compiling() <= (n_done > least and len(set(done)) > 2)
        monkeypatch.setattr(at_once.Storing, "can_be", lambda *_: False)
        del done[:]
        assert by_kernel == followed()
        assert set(done) <= {at_once._LEFT, at_once._WRITTEN, at_once._COUNTED}


@pytest.mark.parametrize("reservoir", RESERVOIRS.values(), ids=RESERVOIRS)
def test_who_stores_in_another_way_is_asked_at_each_observation(reservoir: Callable[[], Any]) -> None:
    make, stream, loss = CASES["numbers"]
    model = make()
    own, plain = (kind(model, loss=loss, reservoir=reservoir(), seed=1) for kind in (StoresItsOwnWay, IncrementalSAGE))
    with waiting():
        for x, y in stream(60):
            assert repr(own.explain_one(x, y)) == repr(plain.explain_one(x, y))
            model.learn_one(x, y)
    assert own.stored == 60
    assert pickle.dumps(own.snapshot()) == pickle.dumps(plain.snapshot())


def test_importances_are_new_dicts_and_increments_are_copies() -> None:
    model = CASES["numbers"][0]()
    pfi = IncrementalPFI(model, seed=1)
    seen = []
    with waiting():
        for x, y in line(40):
            found = pfi.explain_one(x, y)
            seen.append((found, dict(found), *pfi.latest_increments, pfi.latest_increments[1].copy()))
            model.learn_one(x, y)
    assert len({id(found) for found, *_ in seen}) == len(seen)
    for found, then, _, increments, before in seen:
        assert found == then
        assert increments.tolist() == before.tolist()

"""Observations after which nothing is told of importances: what is told and stored is what Python tells and stores."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from river.datasets import synth

from attributary_agents.config.reading import parse_config
from attributary_agents.models.keeping.rules import snapshots
from attributary_agents.models.model_state import new_state
from attributary_agents.models.prequential import prequential
from attributary_agents.state.codec import decode_state, encode_state
from attributary_explainers.compiled import is_compiling
from attributary_explainers.monitor import quiet
from attributary_explainers.shifts.quiet import NOT_KNOWN, QUIET, TELLS
from attributary_topics import Observation, Source, encode_json

N = 900
SETTINGS: dict[str, Any] = {
    "model": [{"class": "river.preprocessing.StandardScaler"}, {"class": "river.linear_model.LinearRegression"}],
    "explainers": {"pfi": {"n_samples": 2}, "sage": {"n_samples": 2}},
    "alpha": 0.01,
    "change": {"window": 60},
    "publish": {"every": 150, "min_observations": 50, "reference_after": 210, "material_shift": 0.1},
}


def stream() -> Iterator[tuple[dict[str, Any], float]]:
    """Numbers whose coefficients change; one feature comes later, and once it is missing."""
    change = synth.FriedmanDrift(drift_type="gra", position=(500, 501), transition_window=1, seed=3)
    for t, (x, y) in enumerate(change.take(N)):
        named: dict[str, Any] = {f"x{i}": value for i, value in x.items() if i < 4 or t > 250}
        if t == 650:
            named["x2"] = None
        yield named, y


def told(settings: dict[str, Any], *, restarts_at: int) -> list[bytes]:
    """The events of a worker's model, and on the way what is stored of its importances."""
    config = parse_config({"models": {"m": settings}}).models["m"]
    state, found = new_state("m", config), []
    for t, (x, y) in enumerate(stream()):
        found += [encode_json(one) for one in prequential(state, Observation("m", x, y), Source("t", 0, t), t)]
        if t == 700:
            state.explainers["pfi"].forget(["x1"])
        if t % 100 == 99:
            parts = (state.shifts, state.publications, state.explainers)
            found.append(repr([snapshots(one) for one in parts]).encode())
        if t == restarts_at:
            state = decode_state("m", config, encode_state(state))
    return found


@pytest.mark.parametrize("changed", [{}, {"explain": {"every": 3}, "explainers": {"pfi": {"n_samples": 2}}}])
def test_what_is_told_and_stored_is_what_it_is_without_compiled_code(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    settings, counts, take = {**SETTINGS, **changed}, Counter[int](), quiet.take_quietly

    def counted(*given: int) -> int:
        found = take(*given)
        counts[found] += 1
        return found

    monkeypatch.setattr(quiet, "take_quietly", counted)
    found = told(settings, restarts_at=450)
    every = changed.get("explain", {}).get("every", 1)
    if is_compiling() and every == 1:
        assert counts[QUIET] > 0.7 * N
        assert counts[TELLS] > 5
    monkeypatch.setattr(quiet, "take_quietly", lambda *_: NOT_KNOWN)
    assert found == told(settings, restarts_at=450)
    assert sum(b"material_change" in one for one in found) > 2


@pytest.mark.skipif(not is_compiling(), reason="kernels are not compiled")
def test_an_importance_that_has_moved_by_what_is_material_is_never_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the importances are: what `Publication.trigger` would find is found."""
    config = parse_config({"models": {"m": {**SETTINGS, "change": None, "watch_loss": False}}}).models["m"]
    state, compared, take = new_state("m", config), Counter[tuple[bool, int]](), quiet.take_quietly

    def checked(*given: int) -> int:
        publications = copy.deepcopy(state.publications)
        due = [one.trigger(state.explainers[name], state.n_observations) for name, one in publications.items()]
        found = take(*given)
        compared[any(due), found] += 1
        return found

    monkeypatch.setattr(quiet, "take_quietly", checked)
    for t, (x, y) in enumerate(stream()):
        prequential(state, Observation("m", x, y), Source("t", 0, t), t)
    assert compared[True, TELLS] > 5
    assert compared[False, QUIET] > 0.7 * N
    assert not compared[True, QUIET]


def test_a_copy_begins_anew() -> None:
    state = new_state("m", parse_config({"models": {"m": SETTINGS}}).models["m"])
    for t, (x, y) in zip(range(100), stream(), strict=False):
        prequential(state, Observation("m", x, y), Source("t", 0, t), t)
    assert (state.quiet._quiet is not None) == is_compiling()
    assert copy.deepcopy(state.quiet)._quiet is None

"""How what explaining costs grows: axes change one thing, ratios, footprints and slopes are those of each size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from benchmarks.speed.growth import AXES, MOST_ROWS, ONE, plan_of, point, slope, slopes
from benchmarks.speed.loops import Kind
from benchmarks.speed.table import NAIVE, OURS, REFERENCE, Plan

TINY = Plan(learned=200, observations=4, block=2, checked=2)


def test_an_axis_gives_ratios_for_each_size() -> None:
    trees = next(axis for axis in AXES if axis.name == "trees")
    found = point(trees, 1, replace(TINY, columns=(OURS, NAIVE)))
    assert found["size"] == 1
    assert all(found["kinds"][kind][OURS]["median"] > 0 for kind in found["kinds"])


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_what_grows_is_what_the_axis_says(axis: Any) -> None:
    sizes = {}
    for size in axis.sizes[:2]:
        subject, kinds = axis.case(size)
        sizes[size] = {
            "features": len(next(subject.stream())[0]),
            "draws": max(kind.draws for kind in kinds),
            "trees": len(list(subject.make())) or subject.make().n_models,
            "stored": kinds[0].reservoir,
            "explainers": kinds[0].copies,
        }
    assert all(of_size[axis.name] == size for size, of_size in sizes.items())
    one, other = sizes.values()
    assert [name for name in one if one[name] != other[name]] == [axis.name]


def test_with_more_rows_fewer_observations_are_measured() -> None:
    plan = Plan(observations=80)
    assert plan_of([Kind("", pfi=1)], 9, plan) == plan
    less = plan_of([Kind("", pfi=10)], 300, plan)
    assert less.observations == MOST_ROWS // 3000
    wide = plan_of([Kind("", pfi=10)], 10_000, plan)
    assert (wide.observations, wide.columns, wide.checked) == (8, (OURS,), 0), "the others would take hours"


def test_the_slope_is_that_of_the_ratio_per_feature() -> None:
    points = [
        {"size": d, "kinds": {ONE.name: {OURS: {"median": 1.0 + 0.25 * d if d <= 30 else 99.0}}}}
        for d in (5, 10, 30, 100)
    ]
    assert slope(points, ONE.name, OURS, largest=30) == pytest.approx(0.25)
    found = slopes(points)
    assert found[OURS]["all"] > 0.5
    assert found[REFERENCE] == {"paper's range": None, "all": None}

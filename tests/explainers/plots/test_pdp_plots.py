"""Plots of partial dependence show the curve, its lines and the values that it stands on."""

import pytest

from attributary_explainers import IncrementalPDP, plots

from .pictures import numeric_pdp, same


def of_kind(ax, gid):
    return [line for line in ax.lines if line.get_gid() == gid]


def test_a_curve_with_its_lines_and_its_rug():
    ax = plots.pdp(numeric_pdp(2), "a")
    (line,) = of_kind(ax, "pdp")
    same(line.get_xdata(), [0, 1, 2])
    same(line.get_ydata(), [6, 7, 10])  # alpha 1: of the last observation alone, b = 6
    assert [list(ice.get_ydata()) for ice in of_kind(ax, "ice")] == [[5, 6, 9], [6, 7, 10]]
    (rug,) = of_kind(ax, "rug")
    same(rug.get_xdata(), [0, 1, 2, 0, 1, 2, 1])
    assert ax.get_ylabel() == "mean prediction"
    assert of_kind(plots.pdp(numeric_pdp(2), "a", ice=False), "ice") == []
    assert of_kind(plots.pdp(numeric_pdp(0), "a"), "ice") == []


def test_categories_are_bars_in_a_steady_order():
    value = {"red": 0.5, "green": 0.25, True: 0.125}
    pdp = IncrementalPDP(lambda x: {"no": 1 - value[x["c"]], "yes": value[x["c"]]}, ["c"], label="yes", n_ice=2)
    for c in ["red", "green", True, "red"]:
        pdp.explain_one({"c": c})
    pdp.update()
    ax = plots.pdp(pdp, "c")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["True", "green", "red"]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx([0.125, 0.25, 0.5])
    for dots, places in zip(of_kind(ax, "ice"), ([2, 1, 0], [1, 0, 2]), strict=True):
        assert sorted(dots.get_xdata()) == sorted(places)
        assert dict(zip(dots.get_xdata(), dots.get_ydata(), strict=True)) == {0: 0.125, 1: 0.25, 2: 0.5}
    assert ax.get_ylabel() == "mean probability of yes"


def test_numbers_declared_categories_are_in_their_order():
    pdp = IncrementalPDP(lambda x: float(x["c"]), categorical=["c"])
    for c in (10, 9, 2):
        pdp.explain_one({"c": c})
    pdp.update()
    ax = plots.pdp(pdp, "c")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "9", "10"]
    assert [bar.get_height() for bar in ax.patches] == [2.0, 9.0, 10.0]

"""Plots show the numbers that they were given: every artist's data against values written by hand."""

import builtins
import gc
import math
import weakref
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from scipy import stats

from attributary_explainers import BatchImportance, IncrementalPDP, InvalidParameterError, plots
from attributary_explainers.history import ImportanceHistory
from attributary_explainers.plots.parts import COLOURS, signed, spread, styles
from attributary_explainers.ranking import BAND
from tests.explainers.changes import change_of, explained, explanation_of

from .pictures import numeric_pdp, same

NAN = math.nan


def history_of(values, errors=None, positions=None, **parameters):
    """A history of columns of equal length; NaN is left out of its record."""
    history = ImportanceHistory(**parameters)
    for i, position in enumerate(positions or range(100, 100 * len(next(iter(values.values()))) + 1, 100)):
        importance = {name: column[i] for name, column in values.items() if not math.isnan(column[i])}
        history.record(
            BatchImportance(importance, {n: (errors or {}).get(n, [NAN] * 99)[i] for n in importance}, 1), position
        )
    return history


VALUES = {"age": [0.5, 0.25, 0.125], "car": [0.0, 0.0, -0.0625], "pay": [NAN, 0.5, 1.0]}
ERRORS = {"age": [0.1, 0.2, 0.3], "car": [0.0, 0.01, 0.02], "pay": [NAN, 0.25, 0.5]}


def lines_of(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def annotations(ax):
    return [child for child in ax.get_children() if isinstance(child, Annotation)]


def marks_of(ax):
    return [line.get_xdata()[0] for line in ax.lines if line.get_gid() == "change"]


def test_lines_are_the_recorded_values():
    ax = plots.importance(history_of(VALUES, ERRORS, unit="squared loss"))
    lines = lines_of(ax)
    assert list(lines) == ["pay", "age", "car"]  # by the newest record
    for name, line in lines.items():
        same(line.get_xdata(), [100, 200, 300])
        same(line.get_ydata(), VALUES[name])
    assert ax.get_ylabel() == "importance\n(squared loss)"
    assert ax.get_xlabel() == "observations (band: 95 % interval)"


@pytest.mark.parametrize("band", [2.0, 1.0, 0.0])
def test_the_band_is_so_many_half_widths_to_either_side(band):
    ax = plots.importance(history_of(VALUES, ERRORS), band=band)
    said = {2.0: " (band: 2 × the 95 % interval)", 1.0: " (band: 95 % interval)", 0.0: ""}
    assert ax.get_xlabel() == f"observations{said[band]}", "what a band is stands where it is drawn"
    if band == 0.0:
        assert len(ax.collections) == 0
        return
    lines = lines_of(ax)
    assert len(ax.collections) == len(lines) == 3
    for (name, line), area in zip(lines.items(), ax.collections, strict=True):
        assert to_hex(area.get_facecolor()[0]) == line.get_color()
        corners = {(x, round(y, 12)) for path in area.get_paths() for x, y in path.vertices}
        columns = zip([100, 200, 300], VALUES[name], ERRORS[name], strict=True)
        edges = {
            (x, round(v + sign * band * BAND * e, 12)) for x, v, e in columns if not math.isnan(v) for sign in (-1, 1)
        }
        assert corners == edges


def test_without_standard_errors_there_is_no_band():
    ax = plots.importance(history_of(VALUES))
    assert len(ax.collections) == 0
    assert ax.get_xlabel() == "observations"


def test_every_line_ends_in_its_name_in_its_colour_and_no_two_names_overlap():
    names = [f"feature {i}" for i in range(8)]
    history = history_of({name: [0.1, 0.001 * i] for i, name in enumerate(names)})
    ax = plots.importance(history)
    labels = {label.get_text(): label for label in annotations(ax)}
    assert set(labels) == set(names)
    for name, line in lines_of(ax).items():
        assert labels[name].get_color() == line.get_color()
        low, high = ax.get_ylim()
        assert labels[name].xy == pytest.approx((1.0, (line.get_ydata()[-1] - low) / (high - low)))
    ax.figure.draw_without_rendering()
    boxes = [(b.y0, b.y1, b.x0) for b in (Text.get_window_extent(label) for label in labels.values())]
    assert all(lower[1] <= upper[0] + 1.0 for lower, upper in pairwise(sorted(boxes)))
    assert all(x0 > ax.get_window_extent().x1 - 1.0 for *_, x0 in boxes)  # beside the data, not on it


def test_a_line_that_has_ended_is_labelled_at_its_last_value():
    ax = plots.importance(history_of({"a": [0.5, 0.4, 0.3], "gone": [0.25, 0.125, NAN]}))
    (label,) = [label for label in annotations(ax) if label.get_text() == "gone"]
    low, high = ax.get_ylim()
    assert label.xy[1] == pytest.approx((0.125 - low) / (high - low))


def test_the_largest_over_the_whole_history_are_shown_and_the_title_counts_the_rest():
    values = {"was": [9.0, 9.0, 0.0], "small": [0.0, 0.0, 0.1], "now": [0.0, 0.0, 2.0], "misleading": [-3.0, 0.0, 0.0]}
    ax = plots.importance(history_of(values), top=3)
    assert list(lines_of(ax)) == ["now", "misleading", "was"]  # of equal shares by name
    assert ax.get_title(loc="left") == "Importance, 3 of 4 features"
    assert list(lines_of(plots.importance(history_of(values), features=["small", "was"]))) == ["small", "was"]


def test_the_scale_holds_every_line_and_the_usual_band_but_not_a_wild_one():
    n = 100
    history = history_of({"a": [1.0] * n}, {"a": [50.0, *[0.1] * (n - 1)]})
    low, high = plots.importance(history).get_ylim()
    assert low == pytest.approx(-0.03 * 1.196)
    assert high == pytest.approx(1.196 * 1.03)
    low, high = plots.importance(history_of({"a": [7.0, 1.0, -5.0]})).get_ylim()
    assert low < -5.0 < 7.0 < high


def test_changes_are_lines_with_labels_and_a_shade_back_to_the_alarm():
    history = history_of(VALUES, ERRORS)
    history.mark_change(explained(250, 200))
    history.mark_change(150, "deployed")
    history.mark_change(20, "before the first record")
    ax = plots.importance(history)
    assert marks_of(ax) == [150, 250]
    (shade,) = [patch for patch in ax.patches if patch.get_alpha() == 0.08]
    assert (shade.get_x(), shade.get_width()) == (200, 50)
    texts = {label.get_text(): label for label in annotations(ax)}
    assert texts["deployed"].xy == (150, 1.0)
    assert texts["b ↑ a ↑"].xy == (250, 1.0)
    ax = plots.importance(history, changes=False)
    assert marks_of(ax) == []
    assert set(texts) - {label.get_text() for label in annotations(ax)} == {"deployed", "b ↑ a ↑"}


def test_labels_of_changes_close_together_do_not_overlap():
    history = history_of({"a": [0.1] * 50})
    for position in range(1000, 2000, 50):
        history.mark_change(position, "salary ↑ commission ↓")
    ax = plots.importance(history)
    assert len(marks_of(ax)) == 20
    ax.figure.draw_without_rendering()
    boxes = [Text.get_window_extent(label) for label in annotations(ax) if label.get_text() != "a"]
    assert len(boxes) >= 3
    boxes.append(ax._left_title.get_window_extent())  # the title loc="left"
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            assert not one.padded(-1.0).overlaps(other.padded(-1.0))


def test_a_change_after_the_last_record_is_in_the_picture():
    history = history_of(VALUES, ERRORS)
    history.mark_change(explained(350, 320))
    for ax in (plots.importance(history), plots.shares(history)):
        assert ax.get_xlim() == (100, 350)
        assert marks_of(ax) == [350]
    assert plots.importance(history, changes=False).get_xlim() == (100, 300)


def test_names_from_outside_are_written_as_they_are():
    names = ["_hidden", "$x^2$ and $", "a" * 50, "two\nlines", "", ("a", 1)]
    shown = {"_hidden", r"\$x^2\$ and \$", "a" * 31 + "…", "two lines", "(no name)", "('a', 1)"}
    importance = {name: 1.0 + i for i, name in enumerate(names)}
    history = ImportanceHistory(unit="$ or $")
    for position in (1, 2):
        history.record(BatchImportance(importance, importance, 1), position)
    history.mark_change(1.5, "$a^$")
    explanation = change_in(dict.fromkeys(names, 0.0), importance)
    pdp = IncrementalPDP(lambda x: 1.0, ["$c_$"], grid_size=9)
    for name in names:
        pdp.explain_one({"$c_$": name})
    pdp.update()
    lines, bars, categories = plots.importance(history), plots.change(explanation), plots.pdp(pdp, "$c_$")
    stack = plots.shares(history)
    assert {label.get_text() for label in annotations(lines)} == shown | {r"\$a^\$"}
    assert {text.get_text() for text in stack.get_legend().get_texts()} == shown
    assert {label.get_text() for label in bars.get_yticklabels()} == shown
    assert {label.get_text() for label in categories.get_xticklabels()} == shown
    for ax in (lines, bars, categories, stack):
        ax.figure.draw_without_rendering()  # a formula that cannot be read would raise


def test_an_explanation_without_features_is_an_empty_picture():
    ax = plots.change(change_in({}, {}))
    assert len(ax.get_yticklabels()) == 0
    ax.figure.draw_without_rendering()


def test_one_record_is_a_point():
    ax = plots.importance(history_of({"a": [0.5]}))
    (line,) = lines_of(ax).values()
    assert line.get_marker() == "o"
    same(line.get_ydata(), [0.5])


def test_colours_stay_with_their_features():
    names = [f"f{i}" for i in range(20)]
    style = styles(names, ["f3", "f11", "f0"])
    assert style == {"f3": (COLOURS[3], "-"), "f11": (COLOURS[0], "-"), "f0": (COLOURS[1], "-")}
    assert styles(names, ["f0", "f3"]) == {"f0": (COLOURS[0], "-"), "f3": (COLOURS[3], "-")}
    assert len(set(styles(names, names).values())) == 20
    forty = [f"f{i}" for i in range(40)]
    assert set(styles(forty, forty)) == set(forty)


def test_colours_can_be_told_apart_by_colour_blind_readers():
    # What protanopes and deuteranopes see: matrices on linear RGB (Vienot, Brettel, Mollon 1999). Distances in CIELAB,
    # where 2.3 is just noticeable.
    blind = {
        "none": np.eye(3),
        "protanope": np.array([[0.1124, 0.8876, 0.0], [0.1124, 0.8876, 0.0], [0.0040, -0.0040, 1.0]]),
        "deuteranope": np.array([[0.2920, 0.7080, 0.0], [0.2920, 0.7080, 0.0], [-0.0223, 0.0223, 1.0]]),
    }
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    for matrix in blind.values():
        relative = np.clip(linear @ matrix.T, 0, 1) @ xyz.T / (xyz @ np.ones(3))
        f = np.where(relative > 0.008856, np.cbrt(relative), 7.787 * relative + 16 / 116)
        lab = np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)
        distance = np.linalg.norm(lab[:, None] - lab[None], axis=2)
        assert distance[np.triu_indices(len(COLOURS), 1)].min() > 10.0
    assert (1.05 / (linear @ xyz[1] + 0.05)).min() > 2.5  # the contrast against white


def test_shares_are_stacked_to_one():
    values = {"a": [1.0, 3.0, 0.0], "b": [3.0, -1.0, 0.0], "c": [NAN, 1.0, -1.0]}
    ax = plots.shares(history_of(values))
    bottoms = {"a": [0, 0, 0], "b": [0.25, 0.75, 0.0], "c": [1.0, 0.75, 0.0]}
    tops = {"a": [0.25, 0.75, 0.0], "b": [1.0, 0.75, 0.0], "c": [1.0, 1.0, 0.0]}
    areas = {area.get_label(): area for area in ax.collections}
    assert list(areas) == ["a", "b", "c"]
    for name, area in areas.items():
        corners = {(x, round(y, 12)) for path in area.get_paths() for x, y in path.vertices}
        edges = {(x, float(y)) for side in (bottoms, tops) for x, y in zip([100, 200, 300], side[name], strict=True)}
        assert corners == edges
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["c", "b", "a"]  # as they lie


def test_shares_of_the_smaller_features_are_together():
    history = history_of({"a": [4.0, 4.0], "b": [2.0, 2.0], "c": [1.0, 0.0], "d": [1.0, 2.0]})
    history.mark_change(150, "here")
    ax = plots.shares(history, top=2)
    areas = {area.get_label(): area for area in ax.collections}
    assert list(areas) == ["a", "b", "others"]
    heights = {y for path in areas["others"].get_paths() for _, y in path.vertices}
    assert heights == {0.75, 1.0}
    assert marks_of(ax) == [150]
    legend = ax.get_legend()
    ax.figure.draw_without_rendering()
    assert legend.get_window_extent().x0 > ax.get_window_extent().x1 - 1.0


def bars_of(ax):
    return {c.get_label(): c for c in ax.containers if isinstance(c, BarContainer)}


def change_in(before, after, after_error=0.01, **head):
    change = change_of(before, after, after_error=after_error)
    return explanation_of(change, **{"n_observations": 700, "discrepancy": 0.5, **head})


def test_bars_before_and_after_with_whiskers_and_stars():
    before = {"small": 0.1, "pay": 0.5, "age": 0.25, "gone": 0.125}
    after = {"small": 0.11, "pay": 0.1, "age": 0.5, "new": 0.0625}
    ax = plots.change(change_in(before, after, after_error=0.02))
    assert "whiskers: 95 % interval" in [text.get_text() for text in ax.get_legend().get_texts()]
    order = [label.get_text() for label in ax.get_yticklabels()]
    assert order == ["pay", "age", "gone", "new", "small"]
    assert list(ax.get_yticks()) == [4, 3, 2, 1, 0]  # the largest change on top
    for side, values, offset in (("before", before, 0.2), ("after", after, -0.2)):
        bars = bars_of(ax)[side]
        same([bar.get_width() for bar in bars], [values.get(name, NAN) for name in order])
        assert [bar.get_y() + bar.get_height() / 2 for bar in bars] == pytest.approx(np.arange(5)[::-1] + offset)
    whiskers = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    for container, values, error, offset in zip(whiskers, (before, after), (0.01, 0.02), (0.2, -0.2), strict=True):
        there = [name for name in order if name in values]
        segments = container.lines[2][0].get_segments()
        assert len(segments) == len(there) == 4
        for name, segment in zip(there, segments, strict=True):
            reach = 1.96 * error
            at = 4 - order.index(name) + offset
            expected = [[values[name] - reach, at], [values[name] + reach, at]]
            assert segment == pytest.approx(np.array(expected))
    # Standard errors of the differences .0224, .02 for new, .01 for gone: by Holm, .0625 is named as the fourth of five
    # where it exceeds z(1 - .05 / 4) = 2.24 of them, and .01 is not.
    z = stats.norm.ppf(1 - 0.05 / 4)
    assert 0.01 < z * math.hypot(0.01, 0.02) < 0.0625
    notes = [label.get_text() for label in annotations(ax)]
    assert notes == ["−0.400 ★", "+0.250 ★", "−0.125 ★", "+0.062 ★", "+0.010"]
    assert ax.get_title(loc="left") == "Followed at 700: discrepancy 0.50"
    assert ax.get_xlabel() == "PFI importance (zero_one loss: share of observations, at most 1)"


def test_the_smaller_changes_are_counted_and_the_legend_is_below_the_data():
    before = {f"f{i}": 0.0 for i in range(15)}
    explanation = change_in(before, {name: 0.01 * i for i, name in enumerate(before)})
    ax = plots.change(explanation, top=3, band=0.0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["f14", "f13", "f12"]
    assert not [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["before", "after", "★ beyond noise", "12 smaller changes not shown"]
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    assert legend.y1 < ax.xaxis.label.get_window_extent().y0 + 1.0
    assert legend.y0 >= -1.0
    assert ax.figure.bbox.width + 1.0 > legend.x1


def test_a_version_has_no_verdict():
    ax = plots.change(change_in({"pay": 0.5}, {"pay": 0.1}, route="version", verdict=None))
    assert ax.get_title(loc="left") == "Change at 700: discrepancy 0.50"


def test_all_changes_in_their_order():
    befores = [{"a": 0.1, "b": 0.5}, {"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5, "late": 0.0}]
    afters = [{"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.51}, {"a": 0.5, "b": 0.2, "late": 0.05}]
    made = [
        change_in(before, after, n_observations=1000 * n, discrepancy=n / 10)
        for n, (before, after) in enumerate(zip(befores, afters, strict=True), start=1)
    ]
    ax = plots.changes(made)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b", "late"]  # the largest change on top
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1 000\n0.10", "2 000\n0.20", "3 000\n0.30"]
    (mesh,) = ax.collections
    same(
        np.ma.filled(mesh.get_array().astype(float), NAN).reshape(3, 3).round(9),
        [[0.4, 0.0, 0.0], [0.0, 0.01, -0.3], [NAN, NAN, 0.05]],
    )
    assert mesh.get_clim() == (-0.4, 0.4)
    # A number where the change is beyond noise, at its place: (column, row) from the top left.
    written = {(int(t.get_position()[0]), int(t.get_position()[1])): t.get_text() for t in ax.texts}
    assert written == {(0, 0): "+0.400", (2, 1): "−0.300", (2, 2): "+0.050"}
    assert [label.get_text() for label in plots.changes(made, top=1).get_yticklabels()] == ["a"]
    assert len(plots.changes(made * 30).get_xticks()) == 60
    ax.figure.draw_without_rendering()


def test_changes_without_an_explanation_or_by_another_method_are_refused():
    with pytest.raises(InvalidParameterError, match=r"^explanations must be at least one"):
        plots.changes([])
    for draw in (plots.change, lambda explanation, method: plots.changes([explanation], method=method)):
        with pytest.raises(InvalidParameterError, match=r"^method must be one of pfi, got 'sage'"):
            draw(explained(), method="sage")
    bare = change_in({}, {}, importances={})
    for draw in (plots.change, lambda explanation: plots.changes([explanation])):
        with pytest.raises(InvalidParameterError, match=r"^importances must be pfi or sage"):
            draw(bare)


def every_plot(ax=None):
    history = history_of(VALUES, ERRORS)
    history.mark_change(150, "x")
    return [
        plots.importance(history, ax=ax),
        history.plot(top=2, ax=ax),
        plots.shares(history, ax=ax),
        plots.change(explained(), ax=ax),
        plots.pdp(numeric_pdp(2), "a", ax=ax),
    ]


def test_a_figure_of_its_own_is_nobody_s_to_close_and_can_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(pyplot, "show", lambda *_, **__: pytest.fail("nothing shows itself"))
    before = pyplot.get_fignums()
    found = every_plot()
    for i, ax in enumerate(found):
        ax.figure.savefig(tmp_path / f"{i}.png", dpi=30)
        assert (tmp_path / f"{i}.png").read_bytes()[:4] == b"\x89PNG"
    assert pyplot.get_fignums() == before
    gone = [weakref.ref(ax.figure) for ax in found]
    del found, ax
    gc.collect()
    assert [figure() for figure in gone] == [None] * 5


def test_axes_that_are_given_are_drawn_on():
    ax = Figure().subplots()
    assert all(drawn is ax for drawn in every_plot(ax))


def test_the_caller_s_settings_are_left_alone():
    before = dict(mpl.rcParams)
    every_plot()
    assert dict(mpl.rcParams) == before


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    history, pdp = history_of(VALUES), numeric_pdp(0)
    monkeypatch.setattr(builtins, "__import__", without)
    calls = [
        (plots.importance, history),
        (plots.shares, history),
        (plots.change, explained()),
        (plots.changes, [explained()]),
        (plots.pdp, pdp, "a"),
    ]
    for plot, *arguments in [*calls, (history.plot,)]:
        with pytest.raises(ImportError, match=r"^plots need matplotlib: pip install 'attributary\[plot\]'$"):
            plot(*arguments)


def test_what_cannot_be_drawn_is_refused():
    history = history_of(VALUES)
    for plot in (plots.importance, plots.shares):
        for parameter, value in (("top", 0), ("features", "age"), ("features", ["ages"])):
            with pytest.raises(InvalidParameterError, match=rf"^{parameter.rstrip('s')}s? must be"):
                plot(history, **{parameter: value})
        with pytest.raises(InvalidParameterError, match=r"^history must be one with a record"):
            plot(ImportanceHistory())
    for plot, thing in ((plots.importance, history), (plots.change, explained())):
        with pytest.raises(InvalidParameterError, match=r"^band must be"):
            plot(thing, band=-1.0)
    with pytest.raises(InvalidParameterError, match=r"^top must be"):
        plots.change(explained(), top=0)
    with pytest.raises(InvalidParameterError, match=r"^feature must be one of \['a'\], got 'b'"):
        plots.pdp(numeric_pdp(0), "b")


@pytest.mark.parametrize("seed", range(20))
def test_spread_moves_as_little_as_the_gap_needs(seed):
    rng = np.random.default_rng(seed)
    wanted, gap = rng.uniform(0, 1, size=6), 0.15
    places = np.array(spread(wanted.tolist(), gap))
    order = np.argsort(wanted)
    assert (np.diff(places[order]) >= gap - 1e-12).all()
    # Least squares under these constraints: isotonic regression of wanted - gap * rank, by its min-max formula.
    target = wanted[order] - gap * np.arange(6)
    best = [max(min(target[i : j + 1].mean() for j in range(k, 6)) for i in range(k + 1)) for k in range(6)]
    assert places[order] == pytest.approx(np.array(best) + gap * np.arange(6))


def test_signed_numbers_have_equal_decimals():
    assert signed([0.1284, -0.014, 0.0]) == ["+0.128", "−0.014", "0.000"]
    assert signed([1234.5, -1.0]) == ["+1234", "−1"]
    assert signed([0.0, NAN]) == ["0", "nan"]
    assert signed([]) == []

"""Data frames have what the dicts have, and pandas is needed for nothing else."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

import attributary_explainers as ae

from . import objects

WITH_ERRORS = ["pfi", "sage", "observational", "constant", "intervals", "window"]
COLUMNS = ["importance", "std_error", "half_width", "low", "high"]


@pytest.mark.parametrize("name", [*WITH_ERRORS, "mdi"])
def test_a_frame_has_a_row_for_each_feature(name):
    explainer = objects.taught(objects.EXPLAINERS[name])
    frame = explainer.to_frame()
    raw = ["raw_importance"] if hasattr(explainer, "raw_importance") else []
    assert list(frame.columns) == [*COLUMNS, *raw]
    assert frame.index.name == "feature"
    assert frame["importance"].to_dict() == dict(explainer.importance)
    assert list(frame["importance"]) == sorted(explainer.importance.values(), reverse=True)
    if name != "mdi":
        assert frame["std_error"].to_dict() == dict(explainer.std_error)
        assert frame["half_width"].to_dict() == dict(explainer.half_width)
        assert np.allclose(frame["high"] - frame["importance"], frame["half_width"])
        assert np.allclose(frame["importance"] - frame["low"], frame["half_width"])
    else:
        assert frame["std_error"].isna().all()


@pytest.mark.parametrize("name", [*WITH_ERRORS, "mdi", "pdp", "together"])
def test_what_has_seen_nothing_has_an_empty_frame(name):
    frame = objects.EXPLAINERS[name](objects.model()).to_frame()
    assert len(frame) == (1 if name == "mdi" else 0)


def test_a_batch_has_its_frame_and_95_percent_of_a_normal():
    model = objects.taught(objects.EXPLAINERS["pfi"]).model
    found = ae.batch_pfi(model, objects.stream(50), seed=1)
    frame = found.to_frame()
    assert list(frame.columns) == COLUMNS
    for name, row in frame.iterrows():
        assert row["half_width"] == 1.96 * found.std_error[name]
        assert row["importance"] == found.importance[name]


def test_together_the_explainer_is_the_first_level():
    both = objects.taught(objects.EXPLAINERS["together"])
    frame = both.to_frame()
    assert frame.index.names == ["explainer", "feature"]
    for name, explainer in both.explainers.items():
        assert frame.loc[name]["importance"].to_dict() == explainer.importance


def test_a_curve_has_a_row_for_each_point():
    pdp = objects.taught(objects.EXPLAINERS["pdp"])
    curves = pdp.update()
    frame = pdp.to_frame()
    assert frame.loc["size"]["value"].tolist() == curves["size"][0]
    assert frame.loc["size"]["prediction"].tolist() == curves["size"][1]


def test_a_history_has_a_row_for_each_record_and_feature():
    history, pfi = ae.ImportanceHistory(), ae.IncrementalPFI(objects.model(), seed=1)
    for x, y in objects.stream(30):
        pfi.explain_one(x, y)
        pfi.model.learn_one(x, y)
        history.record(pfi)
    frame = history.to_frame()
    assert frame.index.names == ["position", "feature"]
    for name in history.names:
        positions, values, widths = history.series(name)
        one = frame.xs(name, level="feature")
        assert one.index.tolist() == positions.tolist()
        assert one["importance"].tolist() == values.tolist()
        assert np.array_equal(one["half_width"], widths, equal_nan=True)
    assert math.isclose(frame["importance"].unstack().iloc[-1]["size"], pfi.importance["size"])
    assert len(ae.ImportanceHistory().to_frame()) == 0


@pytest.mark.long
def test_without_pandas_everything_else_works_and_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import attributary_explainers as ae\n"
        "pfi = ae.IncrementalPFI(lambda x: x['a'], loss='squared', seed=1)\n"
        "pfi.explain_many([{'a': a} for a in range(9)], range(9))._repr_html_()\n"
        "try: pfi.to_frame()\n"
        "except ae.ExplainerError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install pandas" in done.stdout

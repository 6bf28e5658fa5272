"""Partial dependence, compiled and as plain Python: the same curves and snapshots to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from attributary_explainers.core import is_compiled
from attributary_explainers.core.dependence import fitting

from .both_modes import printed_compiled, printed_plainly

SCRIPT = """
import math, random
from river import linear_model
from attributary_explainers import IncrementalPDP

rng = random.Random(3)
for features in (None, ["a", "c"]):
    model = linear_model.LinearRegression()
    pdp = IncrementalPDP(model, features, alpha=0.02, grid_size=4, window=40, categorical=["c"], n_ice=2, seed=1)
    for n in range(400):
        x = {"a": rng.gauss(0, 1), "b": rng.randrange(9), "c": rng.randrange(6)}
        x[rng.choice("abc")] = rng.choice([None, math.inf, 2, 0.5]) if n % 5 == 0 else 1
        if n > 150 and n % 31 == 0:
            del x[rng.choice("abc")]
        pdp.take(x, rng.choice([math.nan, 1e200, 1.0]) if n % 7 == 0 else rng.gauss(0, 1))
        model.learn_one({name: value or 0.0 for name, value in x.items() if value != math.inf}, x.get("a") or 0.0)
        if n == 300 and features:
            pdp.follow(["c", "b"])
        if n % 90 == 0:
            print(pdp.n_observations, pdp.n_skipped, pdp.n_missing, pdp.recent_numbers)
    print(pdp.update(), pdp.snapshot())
"""


@pytest.mark.skipif(not is_compiled(), reason="not compiled: there is one mode alone")
def test_curves_are_the_same_as_c_and_as_plain_python(tmp_path: Path) -> None:
    assert printed_plainly(SCRIPT, tmp_path) == printed_compiled(SCRIPT)


@pytest.mark.parametrize(
    ("value", "as_number", "as_category"),
    [
        (2.5, 2.5, 2.5),
        (7, 7, 7),
        (10**400, None, None),
        (-1e308, None, None),
        (math.nan, None, None),
        (math.inf, None, None),
        (True, None, True),
        ("red", None, "red"),
        (None, None, None),
        ([1], None, None),
        ((1, 2), None, (1, 2)),
        (np.float64(0.5), 0.5, 0.5),
        (np.int32(3), 3, 3),
        (np.bool_(True), None, True),
        (np.str_("red"), None, "red"),
        (Fraction(1, 2), None, Fraction(1, 2)),
    ],
)
def test_a_value_fits_a_grid_of_numbers_or_of_categories_as_a_builtin(value, as_number, as_category):
    for found, expected in ((fitting(value, True), as_number), (fitting(value, False), as_category)):
        assert (type(found), found) == (type(expected), expected)

"""What tests of several plots need: a curve with known values, and a comparison of drawn numbers."""

import numpy as np

from attributary_explainers import IncrementalPDP


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found, dtype=float), expected)


def numeric_pdp(n_ice):
    pdp = IncrementalPDP(lambda x: x["a"] ** 2 + x["b"], ["a"], alpha=1.0, grid_size=3, window=40, n_ice=n_ice)
    for b, a in enumerate([0, 1, 2, 0, 1, 2, 1]):
        pdp.explain_one({"a": a, "b": b})
    pdp.update()
    return pdp

"""Numbers have as many digits as are kept of them, as a format has them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attributary_agents.serve.store.rows import rounded

SIZES = st.floats(1e-14, 1e14) | st.floats(-1e14, -1e-14) | st.sampled_from((0.0, 0.1, -123456.75, 9.9999999))


@given(st.lists(SIZES, min_size=1), st.integers(4, 7))
def test_of_a_number_so_many_digits_are_kept(numbers: list[float], digits: int) -> None:
    for given_, found in zip(numbers, rounded(np.array(numbers), digits).tolist(), strict=True):
        assert float(f"{found:.{digits}g}") == found
        # Half of the last digit, whichever way a number in the middle goes.
        assert abs(found - given_) <= 0.5000001 * 10.0 ** (1 - digits) * 10.0 ** math.floor(
            math.log10(abs(given_) or 1.0)
        )


def test_what_is_very_large_or_not_known_stays() -> None:
    np.testing.assert_equal(
        rounded(np.array([1.23456789e300, -1.5e-300, np.nan, np.inf])), [1.23456789e300, -1.5e-300, np.nan, np.inf]
    )

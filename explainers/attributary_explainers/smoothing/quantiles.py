"""The quantile of the t distribution for 95 % intervals."""

from __future__ import annotations

from scipy.special import stdtrit


def t_quantile(degrees_of_freedom: float) -> float:
    """Return half of a 95 % interval in standard errors; NaN for NaN.

    Parameters
    ----------
    degrees_of_freedom
        Valid range > 0; need not be an integer.

    Examples
    --------
    >>> [round(t_quantile(nu), 2) for nu in (1, 2, 5, 20, 1000)]
    [12.71, 4.3, 2.57, 2.09, 1.96]
    """
    return float(stdtrit(degrees_of_freedom, 0.975))

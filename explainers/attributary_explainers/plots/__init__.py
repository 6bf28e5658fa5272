"""Plots of importance, changes, dependence and shares; need matplotlib.

Every function draws on `ax`, or on a figure of its own where `ax` is None, and returns the Axes. A figure of its own
is not registered with pyplot: it needs no screen and no closing. `ax.figure.savefig("importance.svg")` writes it, and
in a notebook `ax.figure` at the end of a cell shows it. Labels are beside the plot or above it, never on the data.

May import `ranking` and what that may import; `parts` says what the functions draw.
"""

from .importances import bars, pdp
from .model_change import change, changes
from .over_time import importance, shares

__all__ = ["bars", "change", "changes", "importance", "pdp", "shares"]

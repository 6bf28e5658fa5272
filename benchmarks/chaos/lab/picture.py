"""Draws what a scenario has measured, as a picture of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks.chaos.lab.lab import Lab

Curves = Mapping[str, Sequence[float]]
"""Values of curves by their names; NaN where there is none."""


def draw(lab: Lab, x_label: str, x: Sequence[float], panels: Mapping[str, Curves]) -> None:
    """Draw panels, by their titles, one above the other, each from 0; note it where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        lab.note("no picture: matplotlib is not installed")
        return
    figure = Figure(figsize=(9, 1.4 * len(panels) + 0.6), layout="constrained")
    shown = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (title, curves) in zip(shown, panels.items(), strict=True):
        for name, values in curves.items():
            axes.plot(x, values, linewidth=0.8, label=name)
        if len(curves) > 1:
            axes.legend(fontsize=6, loc="lower right")
        axes.set_title(title, loc="left", fontsize=8)
        known = [value for values in curves.values() for value in values if not math.isnan(value)]
        axes.set_ylim(0, 1.1 * max(known, default=0) or 1)
    shown[-1].set_xlabel(x_label)
    path = lab.folder.parent / f"{lab.scenario}.svg"
    figure.savefig(path)
    lab.files.append(path)

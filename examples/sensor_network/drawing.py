"""Draws the experiment: the score, and what each sensor adds to it, by the events of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from .network import Network

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")


def draw(events: Iterable[Mapping[str, Any]], network: Network, path: Path) -> None:
    """Draw to a file, as Figure 2 of the paper does: faulty sensors in colour, all others grey, faults shaded."""
    by_explainer: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        by_explainer.setdefault(event["explainer"], []).append(event)
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    axes = figure.subplots(1 + len(by_explainer), 1, sharex=True)
    first = next(iter(by_explainer.values()))
    axes[0].plot([e["observation"] for e in first], [e["model_loss"] for e in first], color="#333333", linewidth=1.2)
    axes[0].set_ylabel("mean score")
    for ax, (name, its) in zip(axes[1:], sorted(by_explainer.items()), strict=True):
        at = [event["observation"] for event in its]
        coloured = {fault.sensor: colour for fault, colour in zip(network.faults, _COLOURS, strict=True)}
        for sensor in sorted(network.names, key=lambda one: one in coloured):
            values = [event["features"][sensor]["importance"] if sensor in event["features"] else 0.0 for event in its]
            colour = coloured.get(sensor)
            ax.plot(
                at,
                values,
                color=colour or "#bbbbbb",
                linewidth=1.4 if colour else 0.6,
                label=sensor if colour else None,
            )
        ax.set_ylabel(f"{name} ({its[0]['removal']})")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        for fault, colour in zip(network.faults, _COLOURS, strict=True):
            ax.axvspan(fault.begin, fault.end, color=colour, alpha=0.12, linewidth=0)
    for fault, colour in zip(network.faults, _COLOURS, strict=True):
        axes[0].annotate(
            f"{fault.kind}\n{fault.sensor}", (fault.begin, 1.0), xycoords=("data", "axes fraction"), fontsize=8,
            color=colour, va="top", xytext=(3, -2), textcoords="offset points",
        )  # fmt: skip
    axes[-1].set_xlabel("observation")
    figure.savefig(path)

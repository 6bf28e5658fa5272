"""The change explainers that are compared: ours around its defaults, and its routes beside the paper's procedure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from attributary_explainers import ChangeExplainer, PaperChangeExplainer
from attributary_explainers.change.detectors import DETECTOR_NAMES

WINDOWS, THRESHOLDS, DELTAS = (100, 300, 1000), (0.1, 0.2, 0.3, 0.4), (0.002, 0.025, 0.1)

ROUTES = ("paper", "detector", "discrepancy", "both")
"""`detector` and `discrepancy` alone, and `both`, the default; `paper` is the paper's procedure."""


@dataclass(frozen=True)
class Setting:
    """Parameters of a change explainer; those of `ChangeExplainer` as installed, if nothing else is said."""

    route: str = "both"
    window: int = 1000
    threshold: float = 0.2
    detector: str | None = "adwin"
    delta: float | None = 0.025
    scale: str = "relative"
    """Of the discrepancy, and so of the threshold; `absolute` is a share of labels."""

    @property
    def name(self) -> str:
        """All that tells it from the others."""
        detector = "-" if self.detector is None else self.detector
        delta = "" if self.delta is None else f" delta={self.delta:g}"
        return f"{self.route} {detector}{delta} tau={self.threshold:g} {self.scale} K={self.window}"

    def make(self, model: Any, seed: int) -> ChangeExplainer | PaperChangeExplainer:
        """An explainer that tells changes and computes no importances."""
        params = {"delta": self.delta} if self.delta is not None else {}
        common: dict[str, Any] = {"window": self.window, "threshold": self.threshold, "detector_params": params}
        common |= {"distance": "label", "importances": (), "seed": seed}
        if self.route == "paper":
            assert self.detector is not None
            return PaperChangeExplainer(model, detector=self.detector, **common)
        watches = self.route in ("discrepancy", "both")
        return ChangeExplainer(
            model, detector=self.detector, watch_discrepancy=watches, discrepancy=self.scale, **common
        )


def by_route(route: str, **parameters: Any) -> Setting:
    """A route with ADWIN, where it has a detector."""
    setting = Setting(route, **parameters)
    return replace(setting, detector=None, delta=None) if route == "discrepancy" else setting


def _distinct(*settings: Setting) -> tuple[Setting, ...]:
    return tuple(dict.fromkeys(settings))


ROUTE_SETTINGS = tuple(by_route(route, window=300, threshold=0.3, delta=0.002, scale="absolute") for route in ROUTES)
"""In the paper's unit, so that its procedure can be compared: τ is three decisions in ten."""

THRESHOLD_SETTINGS = (
    by_route("detector"),
    *(by_route(route, threshold=tau) for route in ("discrepancy", "both") for tau in THRESHOLDS),
)
DELTA_SETTINGS = tuple(by_route(route, delta=delta) for route in ("detector", "both") for delta in DELTAS)
WINDOW_SETTINGS = tuple(by_route("both", window=window, threshold=tau) for window in WINDOWS for tau in THRESHOLDS)
DETECTOR_SETTINGS = (
    by_route("detector"),
    *(Setting("detector", detector=name, delta=None) for name in DETECTOR_NAMES if name != "adwin"),
)

GRID_SETTINGS = _distinct(*THRESHOLD_SETTINGS, *DELTA_SETTINGS, *WINDOW_SETTINGS, *DETECTOR_SETTINGS)
"""One or two parameters at a time differ from the defaults."""

SETTINGS = (*ROUTE_SETTINGS, *GRID_SETTINGS)
"""All of them, each once."""

SLOW_DETECTORS = frozenset({"kswin"})
"""One statistical test per observation."""


def is_route(index: int, slow_model: bool = False) -> bool:
    """Whether the routes run with the seed of this index."""
    return index % (2 if slow_model else 1) == 0


def is_grid(index: int, slow_model: bool = False) -> bool:
    """Whether the grid runs with the seed of this index."""
    return index % (10 if slow_model else 5) == 0


def settings_of_run(index: int, slow_model: bool = False) -> tuple[Setting, ...]:
    """What runs with the seed of this index: the routes always, the grid once in five, slow detectors with the first.

    Where the model is slow, all of it half as often.
    """

    def runs(setting: Setting) -> bool:
        if setting.detector in SLOW_DETECTORS:
            return index == 0
        return is_route(index, slow_model) if setting in ROUTE_SETTINGS else is_grid(index, slow_model)

    return tuple(setting for setting in SETTINGS if runs(setting))

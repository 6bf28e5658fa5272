"""The change explainers that are compared: routes, and the grid of delta, tau, K and detectors around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attributary_explainers import ChangeExplainer, PaperChangeExplainer
from attributary_explainers.change.detectors import DETECTOR_NAMES

WINDOW, THRESHOLD, DELTA = 300, 0.3, 0.002
"""K, tau and ADWIN's delta where nothing else is said: the defaults."""

WINDOWS, THRESHOLDS, DELTAS = (100, 300, 1000), (0.1, 0.2, 0.3, 0.4), (0.002, 0.025, 0.1)

ROUTES = ("paper", "detector", "discrepancy", "both")
"""`detector` and `discrepancy` alone, and `both`, the default; `paper` is the paper's procedure."""


@dataclass(frozen=True)
class Setting:
    """Parameters of a change explainer."""

    route: str
    window: int = WINDOW
    threshold: float = THRESHOLD
    detector: str | None = "adwin"
    delta: float | None = DELTA

    @property
    def name(self) -> str:
        """All that tells it from the others."""
        detector = "-" if self.detector is None else self.detector
        delta = "" if self.delta is None else f" delta={self.delta:g}"
        return f"{self.route} {detector}{delta} tau={self.threshold:g} K={self.window}"

    def make(self, model: Any, seed: int) -> ChangeExplainer | PaperChangeExplainer:
        """An explainer that declares changes and computes no importances; its threshold is a share of labels."""
        params = {"delta": self.delta} if self.delta is not None else {}
        common: dict[str, Any] = {"window": self.window, "threshold": self.threshold, "detector_params": params}
        common |= {"distance": "label", "importances": (), "seed": seed}
        if self.route == "paper":
            assert self.detector is not None
            return PaperChangeExplainer(model, detector=self.detector, **common)
        watches = self.route in ("discrepancy", "both")
        return ChangeExplainer(
            model, detector=self.detector, watch_discrepancy=watches, discrepancy="absolute", **common
        )


def by_route(route: str, window: int = WINDOW, threshold: float = THRESHOLD, delta: float = DELTA) -> Setting:
    """A route with ADWIN, where it has a detector."""
    if route == "discrepancy":
        return Setting(route, window, threshold, None, None)
    return Setting(route, window, threshold, "adwin", delta)


def _distinct(*settings: Setting) -> tuple[Setting, ...]:
    return tuple(dict.fromkeys(settings))


ROUTE_SETTINGS = tuple(by_route(route) for route in ROUTES)

THRESHOLD_SETTINGS = _distinct(
    *(by_route(route, threshold=tau) for route in ("detector", "discrepancy", "both") for tau in THRESHOLDS)
)
DELTA_SETTINGS = _distinct(*(by_route(route, delta=delta) for route in ("detector", "both") for delta in DELTAS))
WINDOW_SETTINGS = _distinct(*(by_route("both", window, tau) for window in WINDOWS for tau in THRESHOLDS))
RESTART_SETTINGS = _distinct(*(by_route(route, window) for window in (300, 1000) for route in ("paper", "detector")))
DETECTOR_SETTINGS = _distinct(
    by_route("detector"),
    *(Setting("detector", detector=name, delta=None) for name in DETECTOR_NAMES if name != "adwin"),
)

SETTINGS = _distinct(
    *ROUTE_SETTINGS,
    *THRESHOLD_SETTINGS,
    *DELTA_SETTINGS,
    *WINDOW_SETTINGS,
    *RESTART_SETTINGS,
    *DETECTOR_SETTINGS,
)
"""All of them, each once."""

SLOW_DETECTORS = frozenset({"kswin"})
"""One statistical test per observation."""


def is_grid(index: int, slow_model: bool = False) -> bool:
    """Whether all settings run with the seed of this index."""
    return index % (10 if slow_model else 5) == 0


def settings_of_run(index: int, slow_model: bool = False) -> tuple[Setting, ...]:
    """What runs with the seed of this index: the routes always, the rest once in five, what is slow once in twenty.

    Where the model is slow, half as often; the routes still always.
    """

    def runs(setting: Setting) -> bool:
        if setting.detector in SLOW_DETECTORS:
            return index % 20 == 0
        return setting in ROUTE_SETTINGS or is_grid(index, slow_model)

    return tuple(setting for setting in SETTINGS if runs(setting))

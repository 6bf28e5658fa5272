"""Makes the numbers of a model of the stand-in: random walks that look like importances, the same each time."""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from .specs import Spec

Floats = NDArray[np.float64]


class Walk:
    """Holds what the events of one explainer of a model say, one entry per event."""

    def __init__(self, spec: Spec, explainer: str, now_ms: int) -> None:
        rng = np.random.default_rng(zlib.crc32(f"{spec.model_id}/{explainer}".encode()))
        n, d = spec.n_events, len(spec.features)
        self.spec, self.explainer, self.n = spec, explainer, n
        self.time_ms = now_ms - 3_000 - spec.every_ms * np.arange(n - 1, -1, -1)
        step = max(spec.n_observations // (n + 1), 1)
        self.observation = np.arange(1, n + 1) * step + (spec.n_observations - n * step)
        before, after = _sizes(spec.sizes, d, rng), None
        at = round(n * spec.changed_at)
        level = np.tile(before, (n, 1))
        if spec.after:
            after = _sizes(spec.after, d, rng, before)
            away = 1.0 - np.exp(-np.maximum(np.arange(n) - at, 0) / max((n - at) / 6.0, 1.0))
            level += away[:, None] * (after - before)
        smooth = _smooth(rng.standard_normal((n, d)), 0.03)
        factor = 0.8 if explainer == "sage" else 1.0
        noise = 0.05 * before.max() ** 0.35 * np.maximum(level, 1e-3 * before.max()) ** 0.65
        self.importance: Floats = factor * (level + noise * smooth)
        half = 1.6 * noise * (1.0 + 2.5 * np.exp(-np.arange(n) / 40.0)[:, None])
        self.half_width: Floats = half if spec.has_bands and explainer != "mdi" else np.full((n, d), np.nan)
        self.half_width[: min(20, n)] = np.nan
        positive = np.maximum(self.importance, 0.0)
        self.share: Floats = positive / positive.sum(axis=1, keepdims=True)
        self.rank = (-self.importance).argsort(axis=1).argsort(axis=1) + 1
        bump = np.exp(-np.maximum(np.arange(n) - at, 0) / max(0.3 * (n - at), 1.0)) * (np.arange(n) >= at)
        is_changed = bool(spec.after)
        wave = _smooth(rng.standard_normal((n, 3)), 0.02)
        self.model_loss = spec.model_loss * (1.0 + 0.03 * wave[:, 0] + 0.9 * bump * is_changed)
        self.baseline_loss = spec.baseline_loss * (1.0 + 0.008 * wave[:, 1])
        self.present_loss = self.model_loss * 0.92 if spec.n_waiting is not None else np.full(n, np.nan)
        self.discrepancy = np.clip(0.06 + 0.02 * wave[:, 2] + 0.43 * bump * is_changed, 0.0, None)
        first = self.share[min(50, n - 1)]
        self.shift = 0.5 * np.abs(self.share - first).sum(axis=1)
        waiting = spec.n_waiting if spec.n_waiting is not None else np.nan
        self.n_waiting = np.round(waiting * (1.0 + 0.2 * wave[:, 1]))
        self.n_waiting[-1] = waiting
        self.n_expired = np.round(np.linspace(0.0, 40.0, n)) if spec.n_waiting is not None else np.full(n, np.nan)
        self.label_delay = 310.0 * (1.0 + 0.2 * wave[:, 2]) if spec.n_waiting is not None else np.full(n, np.nan)
        self.fidelity = np.full(n, np.nan) if spec.fidelity is None else spec.fidelity + 0.02 * wave[:, 0]
        self.at = at

    def before_and_after(self) -> tuple[Floats, Floats]:
        """Return the importances well before the change and now."""
        at = min(max(self.at - 5, 0), self.n - 1)
        return self.importance[at], self.importance[-1]


def _sizes(given: tuple[float, ...], d: int, rng: Any, like: Floats | None = None) -> Floats:
    rest = given[-1] * rng.uniform(0.0, 0.15, size=max(d - len(given), 0)) if like is None else like[len(given) :]
    return np.concatenate([np.array(given[:d], float), rest])


def _smooth(steps: Floats, alpha: float) -> Floats:
    spread = np.sqrt(alpha / (2.0 - alpha))
    # It begins as if it had run for ever: with the spread that it has later.
    begun, _ = lfilter([alpha], [1.0, alpha - 1.0], steps, axis=0, zi=(1.0 - alpha) * spread * steps[:1])
    return np.asarray(begun / spread, float)


@lru_cache(maxsize=64)
def walk(spec: Spec, explainer: str, now_ms: int) -> Walk:
    """Return the walk of a model's explainer; the last ones are kept."""
    return Walk(spec, explainer, now_ms)


def listed(values: Any) -> list[float | None]:
    """Return numbers as an answer has them: four digits, null where there is none."""
    return [None if not np.isfinite(one) else float(f"{one:.4g}") for one in np.asarray(values, float)]


def number(value: Any) -> float | None:
    """Return one number as an answer has it."""
    return listed([value])[0]

"""A model that is as large as wanted and cheap all the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from river import base

_PAGE = 4096


class Ballast(base.Classifier):
    """Learns one weight per feature, and carries random bytes, of which each observation changes a page.

    Parameters
    ----------
    kilobytes
        Of random bytes: they do not compress, so the stored state is as large.
    """

    def __init__(self, kilobytes: int = 1000) -> None:
        self.kilobytes = kilobytes
        self.bytes = np.random.default_rng(1).integers(0, 256, kilobytes * 1000, dtype=np.uint8)
        self.weights: dict[str, float] = {}
        self.n = 0

    def predict_proba_one(self, x: dict[Any, Any], **_: Any) -> dict[Any, float]:
        """The logistic function of the weighted sum."""
        total = sum(self.weights.get(name, 0.0) * value for name, value in x.items())
        p = 1 / (1 + math.exp(-min(max(total, -30.0), 30.0)))
        return {True: p, False: 1 - p}

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """New bytes in a page, and a step of the gradient; a label that is no number raises in between."""
        self.n += 1
        start = self.n * _PAGE % max(len(self.bytes) - _PAGE, 1)
        self.bytes[start : start + _PAGE] ^= np.random.default_rng(self.n).integers(0, 256, 1, dtype=np.uint8)
        error = int(y) - self.predict_proba_one(x)[True]
        for name, value in x.items():
            self.weights[name] = self.weights.get(name, 0.0) + 0.1 * error * value


def ballast_config(kilobytes: int) -> dict[str, Any]:
    """A model's section of the configuration: of that size, cheaply explained."""
    return {
        "model": {"class": f"{__name__}.Ballast", "params": {"kilobytes": kilobytes}},
        "features": dict.fromkeys("abc", "number"),
        "alpha": 0.01,
        "explainers": {"pfi": {"n_samples": 1}},
        "change": None,  # its reference would be a second copy
        "publish": {"every": 50},
    }

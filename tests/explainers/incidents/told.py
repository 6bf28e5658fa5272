"""Streams through a `Monitor` as installed, and the incidents that it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from attributary_explainers import Monitor
from attributary_topics import decode_json

Row = tuple[dict[str, Any], Any]
Told = list[dict[str, Any]]
_HOME = {"Husband": 1.4, "Wife": 1.0, "Own-child": -1.4, "Unmarried": -0.8, "Not-in-family": 0.35, "Other": -0.6}
_SAYS_LESS = {"changed", "harder", "level", "relies_differently"}


class Bank:
    """A model of two classes that stands still: the truth of `customers`. A word it does not know counts nothing."""

    def __call__(self, x: dict[str, Any]) -> dict[bool, float]:
        """Return the probabilities of both classes."""
        p = float(expit(0.112 * (x["age"] - 53) + 2.8 * x["capital"] + _HOME.get(x["relationship"], 0.0)))
        return {False: 1.0 - p, True: p}


def customers(n: int, seed: int = 1) -> Iterator[Row]:
    """Yield rows; the bank errs in 13 % of them."""
    rng, model, homes = np.random.default_rng(seed), Bank(), list(_HOME)
    for _ in range(n):
        x = {
            "age": int(rng.integers(17, 91)),
            "relationship": homes[rng.integers(len(homes))],
            "capital": float(rng.standard_normal()),
        }
        yield x, bool(rng.random() < model(x)[True])


def told_of(model: Any, rows: Iterable[Row], **settings: Any) -> Told:
    """Return all revisions of its incidents, none of which says less than its verdict."""
    told: Told = []
    with Monitor(in_background=False).add("bank", model, **settings) as monitor:
        monitor.publish_to(lambda *record: told.append(decode_json(record[2])) if "incidents" in record[0] else None)
        for x, y in rows:
            monitor.observe("bank", x, y)
    for one, following in pairwise(told):
        if one["id"] == following["id"]:
            assert following["revision"] == one["revision"] + 1
            is_verdict = one["life"] == "confirmed" and one["what"] in ("worse", "inputs")
            assert not (is_verdict and following["what"] in _SAYS_LESS)
        else:
            assert one["life"] in ("over", "withdrawn"), "at most one is open"
            assert following["revision"] == 1
    return told

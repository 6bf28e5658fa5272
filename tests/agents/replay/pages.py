"""A parsed page, and events to make one of."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "br", "img", "input", "link"}


class Page(HTMLParser):
    """The parsed page: its visible text, its elements, and whether every element is closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == [], "unclosed elements"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script", "title"):
            self.text += data

    def named(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]


def importance(observation: int, features: dict[str, float], **more: Any) -> dict[str, Any]:
    ranked = sorted(features, key=lambda name: -features[name])
    return {
        "model_id": "credit",
        "model_version": "1",
        "explainer": "pfi",
        "removal": "interventional",
        "loss": "brier",
        "loss_unit": "squared probability",
        "loss_largest": 2.0,
        "observation": observation,
        "model_loss": 0.4,
        "baseline_loss": 0.7,
        "quality": {},
        "discrepancy": 0.1,
        "features": {
            name: {
                "importance": value,
                "std_error": 0.01,
                "half_width": 0.02,
                "share": 0.5,
                "rank": ranked.index(name) + 1,
            }
            for name, value in features.items()
        },
        **more,
    }


def compared(names: list[str], significant: int = 1) -> dict[str, Any]:
    """What a change is by one method."""
    values = {"before": 0.1, "after": 0.3, "delta": 0.2}
    return {
        "loss": "zero_one",
        "loss_unit": "share of observations",
        "loss_largest": 1.0,
        "shift": 0.1,
        "ndcg": 0.9,
        "before_loss": 0.1,
        "after_loss": 0.2,
        "features": {
            name: {
                **values,
                **{f"{key}_std_error": 0.02 for key in values},
                "before_rank": i + 1,
                "after_rank": 1,
                "p_value": 0.001 if i < significant else 0.5,
                "significant": i < significant,
            }
            for i, name in enumerate(names)
        },
    }


LOSSES: dict[str, Any] = {
    "loss": "brier",
    "loss_unit": "squared probability",
    "loss_largest": 2.0,
    "reference_then": {"loss": 0.31, "low": 0.29, "high": 0.33, "n": 200},
    "reference_now": {"loss": 0.62, "low": 0.58, "high": 0.66, "n": 50},
    "model_now": {"loss": 0.44, "low": 0.4, "high": 0.48, "n": 25},
    "worsened": {"loss": 0.31, "low": 0.26, "high": 0.36},
    "gain": {"loss": 0.18, "low": 0.14, "high": 0.22},
}


def change(observation: int, names: list[str], significant: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "event": "explanation",
        "change_id": f"credit:topic:0:{observation - 51}:0",
        "model_id": "credit",
        "model_version_before": "1",
        "model_version": "1",
        "verdict": "followed",
        "route": "detector",
        "observation": observation,
        "detected_at": observation - 50,
        "reference_at": 50,
        "onset": {"observation": observation - 55, "low": observation - 57, "high": observation - 51},
        "pattern": None,
        "detector": {"name": "adwin", "params": {"delta": 0.1}, "signal": "zero_one"},
        "window": 50,
        "discrepancy": 0.4,
        "threshold": 0.3,
        "losses": LOSSES,
        "importances": {"pfi": compared(names, significant)},
        "sentence": f"credit changed at {observation}: {', '.join(names[:significant])} gained",
        **more,
    }

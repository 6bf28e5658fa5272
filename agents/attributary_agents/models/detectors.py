"""Fit of a model to its mode: anomaly detectors have no labels."""

from __future__ import annotations

from typing import Any

from attributary_explainers import model_kind
from attributary_explainers.losses.statement import is_score

from ..config.models import ModelConfig
from ..errors import ConfigError


def check_mode(config: ModelConfig, model: Any) -> None:
    """Check that a model's mode fits: anomaly only for anomaly detectors.

    A detector needs its mode to be configured.

    A callable, of which nobody knows what it predicts, may be one where its loss is named.

    Raises
    ------
    ConfigError
        They do not go together; the message says what to write.
    """
    kind = model_kind(model)
    if config.mode == "anomaly":
        if kind not in ("anomaly_detector", None) or (kind is None and not is_score(config.loss)):
            what = "predicts nobody knows what: name a loss, neg_score" if kind is None else f"is a {kind}"
            remedy = "" if kind is None else ": leave `mode` out, or give a model with score_one"
            raise ConfigError(f"mode: anomaly needs an anomaly detector, and {type(model).__name__} {what}{remedy}")
    elif kind == "anomaly_detector" and "mode" not in config.model_fields_set:
        raise ConfigError(
            f"{type(model).__name__} is an anomaly detector, which learns without labels: add `mode: anomaly` (or "
            "`mode: labelled`, where its observations must have labels, which it does not read)"
        )

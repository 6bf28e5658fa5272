"""Makes a model's quality of configured or fitting River metrics."""

from __future__ import annotations

import logging
import math
from typing import Any

from attributary_topics import QualityFigure

from ..losses.labels import check_positive
from ..models.function import resolve_loss
from ..models.known import classes_of
from ..quality.names import quality_metrics
from ..quality.quality import Quality
from .settings import Settings

logger = logging.getLogger(__name__)


def new_quality(settings: Settings, model: Any) -> Quality | None:
    """Make the quality of a model; None where no metric is wanted or fits.

    The reference of a model that learns begins when it has learnt 2 / alpha observations: before, it would be of a
    model that knows nothing yet. InvalidParameterError: a metric does not fit what the model predicts, or the positive
    class is none of those that it knows.
    """
    if not settings.learn:  # one that learns may not have met it yet
        check_positive(settings.positive, classes_of(model))
    names = quality_metrics(settings.quality, resolve_loss(model, settings.scored_loss))
    after = math.ceil(2.0 / settings.alpha) if settings.learn else 0
    return Quality(names, alpha=settings.alpha, reference_after=after, positive=settings.positive) if names else None


def tell_silent(quality: Quality, model_id: str, settings: Settings) -> None:
    """Log why a chosen metric has no value over the complete reference."""
    if settings.quality is None:
        return
    silent = [name for name, value in quality.reference.items() if value is None]
    if silent:
        logger.warning(
            "model %s: %s had no value over the first %d observations, because the labels were not exactly two%s: in "
            "models.%s.quality, choose metrics of any number of classes, such as macro_f1",
            model_id,
            ", ".join(silent),
            quality.n_observations,
            "" if quality.positive is None else f", one of them {quality.positive!r}",
            model_id,
        )


def restored_quality(quality: Quality | None, snapshot: dict[str, Any] | None) -> Quality | None:
    """Return the snapshot's quality, or `quality` if parameters differ."""
    if quality is None or snapshot is None or snapshot["parameters"] != quality.parameters:
        return quality
    return Quality.from_snapshot(snapshot)


def quality_figures(quality: Quality | None) -> dict[str, QualityFigure]:
    """Return the metrics as they are sent, in the configured order."""
    if quality is None:
        return {}
    value, reference = quality.value, quality.reference
    return {name: QualityFigure(value[name], reference[name]) for name in quality.metrics}

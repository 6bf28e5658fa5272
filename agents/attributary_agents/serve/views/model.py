"""Views of a single model: itself, dead letters, partial dependences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from attributary_explainers.wording import show_names, show_number

from ...config.models import ModelConfig
from ...config.settings import Config
from ..answers import (
    DeadLetters,
    Dependence,
    DependenceList,
    ExplainerRow,
    Loss,
    ModelRow,
    ModelView,
    PairOfMoments,
)
from ..store.rows import StoredExplainer, StoredModel, StoredReason
from ..store.store import Store
from .compare import first_with_last
from .fleet import row as row_of
from .selection import model_of, nothing_yet
from .words import dated, known, loss_of, name
from .words import points as shown


def dead_letters(
    store: Store, config: Config, model_id: str, *, start_ms: int | None = None, end_ms: int | None = None
) -> DeadLetters:
    """Return the counts between two moments, the most frequent reason first.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    found = store.dead_letters(model_id, start_ms=start_ms, end_ms=end_ms)
    if not found:
        model_of(store, config, model_id)
    return DeadLetters(model_id=model_id, n=sum(one.n for one in found), reasons=reasons(found))


def reasons(found: Iterable[StoredReason]) -> list[StoredReason]:
    """Return counts by reason and stage, the most frequent first."""
    return sorted(found, key=lambda one: (-one.n, one.reason, one.stage))


def dependences(store: Store, config: Config, model_id: str, feature: str | None = None) -> DependenceList:
    """Return the latest partial dependences of a model's features.

    Of all features, or of `feature` alone.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows the model.
    """
    model_of(store, config, model_id)
    found = store.dependences(model_id)
    return DependenceList(
        model_id=model_id,
        dependences=[_dependence(model_id, event) for event in found if feature in (None, event["feature"])],
    )


def _dependence(model_id: str, event: Mapping[str, Any]) -> Dependence:
    is_number = event["kind"] == "number" and not any(isinstance(value, str) for value in event["values"])
    label = event["label"]
    return Dependence(
        model_id=model_id,
        model_version=event["model_version"],
        feature=event["feature"],
        kind="number" if is_number else "category",
        label=None if label is None else str(label),
        values=[float(value) if is_number else str(value) for value in event["values"]],
        mean=shown(np.array(event["mean"], np.float64)),
        half_width=shown(np.array(event["half_width"], np.float64)),
        time_ms=dated(event["time_ms"]),
        observation=event["observation"],
    )


FAR = 5.0
"""Times the loss of the baseline, beyond which an importance says more about the values that are drawn."""

_LOOKED_AT = 20


def model_view(store: Store, config: Config, model_id: str, *, now_ms: int, window_ms: int | None = None) -> ModelView:
    """Return a model: its row, and everything else there is to show.

    One that is configured, and of which nothing was said yet, is shown without numbers.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows it.
    """
    model = model_of(store, config, model_id)
    settings = config.find(model_id)
    row = row_of(store, config, model_id, now_ms=now_ms, window_ms=window_ms)
    start_ms = None if window_ms is None else now_ms - window_ms
    order = [] if settings is None else list(settings.explainers.of_importance)
    rank: dict[str, int] = {explainer: at for at, explainer in enumerate(order)}
    explainers = sorted(model.explainers, key=lambda one: (rank.get(one.explainer, len(rank)), one.explainer))
    versions = store.versions(model_id)
    compared = first_with_last(store, model, settings)
    delay = next((one.scalars.get("label_delay_median_s") for one in explainers), None)
    return ModelView(
        row=row,
        explainers=[_explainer(one) for one in explainers],
        versions=versions,
        dead_letters=reasons(store.dead_letters(model_id, start_ms=start_ms)),
        quality=list(dict.fromkeys(metric for one in explainers for metric in one.quality)),
        threshold=_threshold(store, config, model_id),
        label_delay_median_s=known(delay),
        dependences=[str(one["feature"]) for one in store.dependences(model_id)],
        notes=list(_notes(row, model, settings)),
        guard=model.status.get("guard"),
        compare=None if compared is None else PairOfMoments(a=str(compared[0]), b=str(compared[1])),
    )


def _explainer(one: StoredExplainer) -> ExplainerRow:
    return ExplainerRow(
        name=one.explainer,
        removal=one.removal,
        loss=loss_of(one.loss, one.loss_unit, one.loss_largest),
        alpha=one.alpha,
        n_features=len(one.features),
        n_events=one.n_events,
        first_ms=dated(one.first_ms),
        last_ms=dated(one.last_ms),
        first_observation=one.first_observation,
        last_observation=one.last_observation,
        n_observations=one.n_observations,
    )


def _threshold(store: Store, config: Config, model_id: str) -> float | None:
    """Return the threshold of the discrepancy, as told last or configured.

    The configured threshold counts only where none was told.
    """
    explanations = (one.event["explanation"] for one in store.incidents(model_id, last=_LOOKED_AT))
    if (last := next((one for one in explanations if one is not None), None)) is not None:
        return known(last["threshold"])
    settings = config.find(model_id)
    return None if settings is None or settings.change is None else settings.change.threshold


def _notes(row: ModelRow, model: StoredModel, settings: ModelConfig | None) -> Iterator[str]:
    """Yield notes to read before believing the numbers."""
    if row.is_failing:
        yield "The model fails on what comes: of late its observations have become dead letters."
    if row.state == "refused":
        yield "What is stored of the model is damaged: its observations become dead letters."
    if not model.explainers and row.state != "refused":
        yield str(nothing_yet(model, settings))
    if row.mode == "unlabelled":
        yield "These are importances of the model's predictions, not of being right: its observations have no labels."
    if row.mode == "anomaly":
        above, below = ("lower", "raise") if row.loss is not None and row.loss.name == "score" else ("raise", "lower")
        yield (
            "These are importances of an anomaly score: a positive one says that the values of the feature "
            f"{above} it, a negative one that they {below} it."
        )
    if row.mode == "mirror":
        said = "not known yet" if row.fidelity is None else show_number(row.fidelity)
        low = ", which is too low to rely on what follows" if row.is_unfaithful else ""
        yield f"These are importances of a mirror, which learns what another model predicts; fidelity: {said}{low}."
    if row.model_loss is not None and row.baseline_loss is not None and row.model_loss > row.baseline_loss:
        yield _loses_more(row.model_loss, row.baseline_loss, row.loss)
    for one in model.explainers:
        yield from _far(one)


def _loses_more(model: float, baseline: float, loss: Loss | None) -> str:
    """Return a note that no feature helps the model.

    For a squared loss it has the roots, as the page shows them elsewhere.
    """
    is_squared = loss is not None and loss.name == "squared"
    figures = [show_number(math.sqrt(value) if is_squared and value >= 0.0 else value) for value in (model, baseline)]
    if math.isclose(model, baseline, rel_tol=1e-3):
        return (
            f"The model loses as much as its mean prediction, which knows no feature ({figures[1]}): importances say "
            "little until it has learnt more."
        )
    return (
        f"The model loses more ({figures[0]}) than its mean prediction, which knows no feature ({figures[1]}): "
        "importances say little until it has learnt more."
    )


def _far(one: StoredExplainer) -> Iterator[str]:
    baseline = known(one.scalars.get("baseline_loss"))
    if baseline is None or baseline <= 0.0:
        return
    pairs = zip(one.features, one.importance.tolist(), strict=True)
    far = [name(feature) for feature, value in pairs if abs(value) > FAR * baseline]
    if far:
        yield (
            f"{show_names(far, 3)} ({one.explainer}): far more than a model without features loses. The values that "
            "are drawn in its place are far from where the model is in use, as those of a clock or a counter are; it "
            "says no more than that the model needs the feature."
        )

"""Views of how two moments of a model, or two models, differ.

A moment is written `bank@now`, `bank@2026-11-01T10:00` or `bank@#5543`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from attributary_explainers.ranking import ndcg, shift
from attributary_topics.times import read_time

from ...config.models import ModelConfig
from ...config.settings import Config
from ..answers import ComparedFeature, Comparison, Side
from ..store.rows import Snapshot, StoredIncident, StoredModel
from ..store.store import Store
from .selection import explainer_of, mode_of, model_of, not_found, nothing_yet
from .words import WrongQuestionError, dated, known, loss_of, name, shares, stored

_REMEDY = "Write MODEL@now, MODEL@2026-11-01T10:00 or MODEL@#OBSERVATION."
_LARGEST = 2**53
_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a model: by time, by observation, or the latest."""

    model_id: str
    time_ms: int | None = None
    observation: int | None = None

    def __str__(self) -> str:
        if self.observation is not None:
            return f"{self.model_id}@#{self.observation}"
        if self.time_ms is not None:
            at = datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="milliseconds")
            return f"{self.model_id}@{at.replace('+00:00', 'Z')}"
        return f"{self.model_id}@now"


def read_moment(text: str) -> Moment:
    """Return the moment that a text names; the last @ ends the model id.

    Raises
    ------
    WrongQuestionError
        It names none.
    """
    model_id, at, moment = text.rpartition("@")
    if not at:
        return Moment(_checked(text, text))
    if moment == "now":
        return Moment(_checked(model_id, text))
    if moment.startswith("#"):
        digits = moment[1:]
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
            raise _wrong(text, f"{name(moment)} is no number of an observation")
        return Moment(_checked(model_id, text), observation=int(digits))
    try:
        # A plus of a time zone becomes a space in addresses that are not encoded.
        time_ms = read_time(moment.replace(" ", "+") if "T" in moment else moment)
    except (ValueError, OverflowError):
        raise _wrong(text, f"{name(moment)} is no time") from None
    if not 0 <= time_ms <= _LARGEST:
        raise _wrong(text, f"{name(moment)} is no time since 1970")
    return Moment(_checked(model_id, text), time_ms=time_ms)


def _checked(model_id: str, text: str) -> str:
    if not model_id:
        raise _wrong(text, "there is no model id")
    return model_id


def _wrong(text: str, why: str) -> WrongQuestionError:
    return WrongQuestionError("No such moment", f"'{name(text)}' names no moment of a model: {why}. {_REMEDY}")


Pair = tuple[Moment, Moment]

_POINTS = 500
_TOP = 5


def first_with_last(store: Store, model: StoredModel, settings: ModelConfig | None) -> Pair | None:
    """Return the first moment with all intervals known, and the last.

    None where they are the same event.
    """
    explainer = explainer_of(model, settings)
    if explainer is None:
        return None
    before = store.first_known(model.model_id, explainer.explainer, explainer.features[:_TOP], points=_POINTS)
    after = explainer.last_observation
    if before is None or before >= after:
        return None
    return Moment(model.model_id, observation=before), Moment(model.model_id, observation=after)


def around(incident: StoredIncident) -> Pair | None:
    """Return moments before and after an incident; None if it has no before.

    The second is that of the incident's newest revision.
    """
    since = incident.event["since"]
    before = (since["observation"] if since["low"] is None else since["low"]) - 1
    if not 0 < before < incident.observation:
        return None
    model_id = incident.model_id
    return Moment(model_id, observation=before), Moment(model_id, observation=incident.observation)


_OF_TARGET = "target"
_MODES = {
    "labelled": "of being right",
    "unlabelled": "of its own predictions, and not of being right",
    "mirror": "of a mirror",
    "anomaly": "for an anomaly score, and not of being right",
}


def compare(store: Store, config: Config, a: Moment, b: Moment, explainer: str | None = None) -> Comparison:
    """Return how two moments differ: at each the last event at or before it.

    Importances are subtracted where both are by one explainer, one way of removing features and one loss; otherwise
    only shares and ranks are compared, and `note` says so. The two are taken as independent.

    Parameters
    ----------
    explainer
        None: the first of the configuration that both have; where they have none in common, the one that each shows
        first.

    Raises
    ------
    NotFoundError
        There is no such model or explainer, or nothing has been published yet.
    """
    models = model_of(store, config, a.model_id), model_of(store, config, b.model_id)
    first, second = (
        _snapshot(store, config, model, moment, chosen)
        for model, moment, chosen in zip(models, (a, b), _chosen(config, models, explainer), strict=True)
    )
    is_same_loss = (first.loss, first.loss_unit) == (second.loss, second.loss_unit)
    is_same_kind = (first.explainer, first.removal) == (second.explainer, second.removal)
    is_same = is_same_loss and is_same_kind
    before, after = _importance(first), _importance(second)
    notes = [*_differences(first, second), *_doubts(config, models, first, second, is_same)]
    return Comparison(
        a=_side(first),
        b=_side(second),
        is_same_loss=is_same_loss,
        note=" ".join(notes) or None,
        shift=known(shift(before, after)) if before and after else None,
        ndcg=known(ndcg(before, after)) if before and after else None,
        features=_features(first, second, is_same),
    )


def _chosen(config: Config, models: tuple[StoredModel, StoredModel], asked: str | None) -> tuple[str | None, ...]:
    if asked is not None:
        return asked, asked
    names = [[one.explainer for one in model.explainers] for model in models]
    settings = config.find(models[0].model_id)
    order = [*(settings.explainers.of_importance if settings is not None else ()), "pfi", *names[0]]
    both = next((one for one in order if one in names[0] and one in names[1]), None)
    return both, both


def _snapshot(store: Store, config: Config, model: StoredModel, moment: Moment, explainer: str | None) -> Snapshot:
    settings = config.find(model.model_id)
    found = explainer_of(model, settings, explainer)
    if found is None:
        raise nothing_yet(model, settings)
    snapshot = store.snapshot(model.model_id, found.explainer, time_ms=moment.time_ms, observation=moment.observation)
    if snapshot is None:  # dropped since
        raise not_found("model", model.model_id, ())
    return snapshot


def _importance(of: Snapshot) -> dict[str, float]:
    pairs = zip(of.features, of.importance.tolist(), strict=True)
    return {feature: value for feature, value in pairs if math.isfinite(value)}


def _side(of: Snapshot) -> Side:
    return Side(
        model_id=of.model_id,
        model_version=of.version,
        explainer=of.explainer,
        removal=of.removal,
        loss=loss_of(of.loss, of.loss_unit, of.loss_largest),
        time_ms=dated(of.time_ms),
        observation=of.observation,
        model_loss=known(of.scalars.get("model_loss")),
        baseline_loss=known(of.scalars.get("baseline_loss")),
    )


def _differences(a: Snapshot, b: Snapshot) -> Iterator[str]:
    """Yield why importances cannot be subtracted."""
    differ = []
    if (a.loss, a.loss_unit) != (b.loss, b.loss_unit):
        differ.append(
            f"the losses differ ({a.loss} and {b.loss})"
            if a.loss != b.loss
            else f"the losses have different units ({a.loss_unit} and {b.loss_unit})"
        )
    if a.explainer != b.explainer:
        differ.append(f"the explainers differ ({a.explainer} and {b.explainer})")
    if a.removal != b.removal:
        differ.append(f"features are removed in different ways ({a.removal} and {b.removal})")
    if differ:
        said = f"{', '.join(differ[:-1])} and {differ[-1]}" if len(differ) > 1 else differ[0]
        yield f"{said[0].upper()}{said[1:]}: only shares and ranks are compared."


def _doubts(
    config: Config, models: tuple[StoredModel, StoredModel], a: Snapshot, b: Snapshot, is_same: bool
) -> Iterator[str]:
    """Yield the caveats of a comparison."""
    if (a.model_id, a.explainer, a.observation) == (b.model_id, b.explainer, b.observation):
        yield "Both sides are the same event."
    modes = [mode_of(model, config.find(model.model_id)) for model in models]
    if modes[0] != modes[1]:
        yield (
            f"The importances of {name(a.model_id)} are {_MODES[modes[0]]}, those of {name(b.model_id)} "
            f"{_MODES[modes[1]]}."
        )
    if is_same and a.model_id != b.model_id and _OF_TARGET in a.loss_unit:
        yield "Differences mean something only if both models predict the same target, in the same unit."


def _features(a: Snapshot, b: Snapshot, is_same: bool) -> list[ComparedFeature]:
    """Return all features, the most changed first.

    By importance, or by share where only shares can be compared.
    """
    sides = [_by_name(side) for side in (a, b)]
    rows = []
    for feature in dict.fromkeys((*a.features, *b.features)):
        (before, before_half, before_share, before_rank), (after, after_half, after_share, after_rank) = (
            side.get(feature, (None, None, None, None)) for side in sides
        )
        has_delta = is_same and before is not None and after is not None
        delta = after - before if has_delta and after is not None and before is not None else None
        halves = None if before_half is None or after_half is None else math.hypot(before_half, after_half)
        row = ComparedFeature(
            feature=feature,
            a=before,
            a_half_width=before_half,
            b=after,
            b_half_width=after_half,
            delta=stored(delta),
            delta_half_width=stored(halves) if delta is not None else None,
            a_share=before_share,
            b_share=after_share,
            a_rank=before_rank,
            b_rank=after_rank,
        )
        pair = (before, after) if is_same else (before_share, after_share)
        rows.append((-abs(stored((pair[1] or 0.0) - (pair[0] or 0.0)) or 0.0), feature, row))
    return [row for _, _, row in sorted(rows, key=lambda one: one[:2])]


def _by_name(of: Snapshot) -> dict[str, tuple[float | None, float | None, float | None, int | None]]:
    share = shares(of.importance)
    found = {}
    for at, feature in enumerate(of.features):
        value = stored(of.importance[at])
        rank = None if value is None else at + 1
        found[feature] = value, stored(of.half_width[at]), share[at], rank
    return found

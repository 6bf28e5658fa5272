"""Makes a model's explainers and watches, as its settings describe."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from attributary_topics.errors import without_text

from ..change.events import ChangeEvent as Told
from ..change.explainer import ChangeExplainer
from ..errors import ExplainerError, InvalidParameterError, ModelError
from ..incremental.explainers import Explainers
from ..incremental.removal import RemovalExplainer
from ..loss_shift.monitor import LossMonitor
from ..losses.losses import with_positive
from ..models.function import model_kind, resolve_loss
from ..removal.reservoirs import make_reservoir
from ..shifts.shift import ImportanceShift
from .loss_watch import LossWatch
from .settings import EXPLAINERS, Settings, parameters_of

OF_RESERVOIR = ("reservoir_size", "gap", "reach")
"""Parameters of an explainer that are those of its reservoir."""


def new_explainer(model_id: str, settings: Settings, name: str, model: Any) -> RemovalExplainer:
    """Make the configured explainer of this name, with no observations."""
    kind = EXPLAINERS[name]
    chosen = {key: value for key, value in settings.explainers[name].items() if value is not None}
    reservoir = make_reservoir(chosen.pop("reservoir", "lagged"), *(chosen.pop(key, None) for key in OF_RESERVOIR))
    arguments = {
        "alpha": settings.alpha,
        **chosen,
        "reservoir": reservoir,
        "loss": settings.explained_loss,
        "groups": settings.groups,
        "missing": settings.missing,
        "feature_share": settings.feature_share,
        "seed": seed_of(settings.seed, model_id, name),
    }
    known = parameters_of(kind)
    explainer = kind(model, **{name: value for name, value in arguments.items() if name in known})
    explainer.know_names()  # on a stream the first record may be one without the features of a group
    return explainer


def new_change_explainer(
    model_id: str, settings: Settings, model: Any, version: str | None = None
) -> ChangeExplainer | None:
    """Make the configured change explainer, or None.

    ExplainerError: the model cannot be explained with these parameters; the message names the key.
    """
    if settings.change is None:
        return None
    given = {"loss": None, **settings.change}
    given["loss"] = with_positive(given["loss"], settings.positive)
    if settings.mode == "anomaly" and given["loss"] is None:
        given["loss"] = settings.explained_loss
    if model_kind(model) is None:  # then nothing but `loss` says what it predicts
        read, own = resolve_loss(model, settings.explained_loss).output, given["loss"] or settings.explained_loss
        if resolve_loss(model, own).output != read:
            raise InvalidParameterError(
                "change.loss", f"a loss of what {settings.loss} reads ({read}): leave it out", given["loss"]
            )
        given["loss"] = own
    try:
        explainer = ChangeExplainer(
            model,
            **given,
            groups=settings.groups,
            own_labels=settings.mode == "unlabelled",
            version=version,
            seed=seed_of(settings.seed, model_id, "change"),
        )
    except InvalidParameterError as error:
        raise InvalidParameterError(f"change.{error.parameter}", error.expected, error.value) from None
    except ModelError as error:
        raise ModelError(f"change: {error}") from None
    explainer.know_names()
    return explainer


def new_loss_watch(model_id: str, settings: Settings, model: Any) -> LossWatch | None:
    """Make the watch of the model's loss, before its first observation.

    None where the configuration wants none, and for an anomaly detector: its score is no prediction of the label.
    """
    if not settings.watch_loss or model_kind(model) == "anomaly_detector":
        return None
    output = resolve_loss(model, settings.loss).output
    monitor = LossMonitor(
        model,
        output=None if output == "any" else output,
        learns=settings.learn,
        groups=settings.groups,
        missing=settings.missing,
        seed=seed_of(settings.seed, model_id, "loss"),
    )
    monitor.know_names()
    return LossWatch(model_id, monitor, None if settings.holdout is None else settings.holdout.name)


def new_shift_watches(settings: Settings) -> dict[str, ImportanceShift]:
    """Make a watch of the importances of each explainer.

    Together they promise at most one false shift in 10^6 observations.
    """
    return {name: ImportanceShift(n_explainers=len(settings.explainers)) for name in settings.explainers}


def seed_of(seed: int, model_id: str, name: str) -> int:
    """Return the seed of a generator, each its own."""
    # Each generator its own stream of numbers, the same in every process: hash() of a string is not.
    return zlib.crc32(f"{seed}/{model_id}/{name}".encode())


def explainer_of_version(
    model_id: str, settings: Settings, name: str, explainer: RemovalExplainer, model: Any
) -> RemovalExplainer:
    """Return the explainer of a new version, with the rows stored so far.

    It begins afresh where the new version has another loss, or raises on a stored row.
    """
    if resolve_loss(model, settings.loss).name == explainer.loss.name and _predicts(model, explainer):
        return explainer.for_model(model)  # draws from the same stored observations
    return new_explainer(model_id, settings, name, model)


def _predicts(model: Any, explainer: RemovalExplainer) -> bool:
    """Return whether a model can predict every row the explainer stored."""
    function = Explainers(model, {}, explainer.loss.output).function
    try:
        for row in explainer.reservoir.rows:
            function(row)
    except Exception:  # noqa: BLE001 - a model is the user's code: whatever it raises is about these rows
        return False
    return True


def begin_comparison(
    change: ChangeExplainer | None, model: Any, version: str, *, explain: bool
) -> tuple[Sequence[Told], str | None]:
    """Compare the new version; return events, and why none are explained."""
    if change is None:
        return (), "the configuration says `change: null`"
    try:
        return change.new_version(model, version, explain=explain), None
    except Exception as error:  # noqa: BLE001 - whatever the user's models raise, the new one is what is deployed
        why = f"{type(error).__name__}: {error}" if isinstance(error, ExplainerError) else without_text(error)
        try:
            return change.new_version(model, version, explain=False), why
        except ExplainerError:  # of another kind: nothing of the old change explainer is of use to it
            return change.close(), why

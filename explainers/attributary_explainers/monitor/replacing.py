"""What of an explained model goes on with a new version: what is stored, and how the two are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attributary_topics.errors import without_text

from ..change.events import ChangeEvent as Told
from ..change.explainer import ChangeExplainer
from ..errors import ExplainerError
from ..incremental.removal import RemovalExplainer
from ..incremental.together import Explainers
from ..models.function import resolve_loss
from .explainers import new_explainer
from .settings import Settings


def explainer_of_version(
    model_id: str, settings: Settings, name: str, explainer: RemovalExplainer, model: Any
) -> RemovalExplainer:
    """Return the explainer of a new version, which draws from what was stored for the one before.

    It begins afresh where the new version has another loss, or raises on a stored row.
    """
    if resolve_loss(model, settings.loss).name == explainer.loss.name and _predicts(model, explainer):
        return explainer.for_model(model)  # draws from the same stored observations
    return new_explainer(model_id, settings, name, model)


def _predicts(model: Any, explainer: RemovalExplainer) -> bool:
    """Return whether a model predicts what the explainer has stored: it would raise on every row that is drawn."""
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
    """Let the change explainer go on with the new version; return what it tells, and why nothing will be explained."""
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

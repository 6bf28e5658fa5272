"""Choice of the model, its settings and its explainer for a question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from attributary_explainers.wording import closest, show_count

from ...config.models import ModelConfig
from ...config.settings import Config
from ...config.templates import is_template
from ..answers import Mode
from ..store.rows import StoredExplainer, StoredModel
from ..store.store import Store
from .words import NotFoundError, name

_MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}
_PREFERRED = "pfi"


def model_of(store: Store, config: Config, model_id: str) -> StoredModel:
    """Return a model; only its id if it is configured and still silent.

    Raises
    ------
    NotFoundError
        Neither a topic nor the configuration knows it.
    """
    if (found := store.model(model_id)) is not None:
        return found
    if not is_template(model_id) and config.find(model_id) is not None:
        return StoredModel(model_id, (), {}, None, None)
    known = [model.model_id for model in store.models()]
    known += [one for one in config.models if one not in set(known)]
    raise not_found("model", model_id, known)


def not_found(what: str, asked: str, choices: Iterable[str]) -> NotFoundError:
    """Return the error for an unknown name, with the closest known name."""
    return NotFoundError(f"No such {what}", f"No {what} '{name(asked)}'.", closest(asked[:200], choices))


def explainer_of(model: StoredModel, settings: ModelConfig | None, asked: str | None = None) -> StoredExplainer | None:
    """Return the explainer that is asked for, or that is shown first.

    That is the first of the configuration of which there are events, otherwise pfi, otherwise any; None where there is
    none.

    Raises
    ------
    NotFoundError
        There is none of the name that is asked for.
    """
    by_name = {one.explainer: one for one in model.explainers}
    if asked is not None:
        if asked not in by_name:
            if not by_name:
                raise nothing_yet(model, settings)
            raise not_found("explainer", asked, by_name)
        return by_name[asked]
    order = [*(settings.explainers.of_importance if settings is not None else ()), _PREFERRED, *by_name]
    return next((by_name[one] for one in order if one in by_name), None)


def nothing_yet(model: StoredModel, settings: ModelConfig | None) -> NotFoundError:
    """Return the error for a model without published importances."""
    n = model.status.get("n_observations")
    has = f" It has taken {show_count(n)} observations so far." if isinstance(n, int) else " No worker has told of it."
    every = f" It publishes every {show_count(settings.publish.every)} observations." if settings is not None else ""
    if settings is not None and isinstance(n, int) and n > settings.publish.every:
        every += " `attributary check` says what it lacks."
    return NotFoundError(
        "No importance yet", f"No importance of '{name(model.model_id)}' has been published yet.{has}{every}"
    )


def mode_of(model: StoredModel, settings: ModelConfig | None) -> Mode:
    """Return the mode of a model: by its events, or else as configured."""
    if model.explainers:
        latest = max(model.explainers, key=lambda one: (one.last_ms or 0, one.last_observation))
        return _MODES.get(latest.mode or "labelled", "labelled")
    return "labelled" if settings is None else _MODES.get(settings.mode, "labelled")

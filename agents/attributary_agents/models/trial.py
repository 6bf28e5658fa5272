"""Trial of the configured models before the start.

It shows whether they can be made, saved, explained as configured, and taught.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from numbers import Number
from typing import Any

from attributary_explainers import ExplainerError, dump_model, model_kind
from attributary_explainers.losses.statement import is_score
from attributary_explainers.missing import is_missing
from attributary_explainers.models.known import features_of
from attributary_explainers.models.learning import learn_function
from attributary_explainers.monitor.holdout import take_reference
from attributary_explainers.wording import show_names
from attributary_topics.errors import shorten

from ..config.models import ModelConfig
from ..config.served import ServedConfig
from ..config.settings import Config
from ..errors import ConfigError, ForeignTypeError, SourceError
from .artefacts.served.client import Client
from .from_mlflow.loading import check_registered
from .model_state import ModelState, new_state
from .rules import check_beside
from .versions import allowlist_of, configured_version


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


def check_models(config: Config) -> None:
    """Build every configured model and its explainers once, to find faults.

    Each is saved and forgotten: faults show before the start. Of models that are configured alike, one is built. Of
    those of MLflow's registry none is: which version they begin with, the models topic says, and it is tried when it is
    deployed.

    Raises
    ------
    ConfigError
        As for `check_model`.
    """
    check_registered(config)
    distinct: dict[str, str] = {}
    for model_id, model in config.models.items():
        if model.registered is None:
            distinct.setdefault(repr(model), model_id)
    for model_id in distinct.values():
        check_model(model_id, config.models[model_id])


def check_model(model_id: str, config: ModelConfig) -> ModelState:
    """Build a model with its explainers, save it, and return its first state.

    Raises
    ------
    ConfigError
        The model cannot be made or saved, holds what stored models may not hold, cannot be explained as configured, or
        is to learn and cannot; or what a served model is asked with is not there.
    """
    try:
        if isinstance(config.model, ServedConfig):
            Client(config.model).check()
        version = configured_version(config)
        check_mode(config, version.model)
        state = new_state(model_id, config, version)
        check_beside(config, state.model)
        if config.learn:
            learn_function(state.model)
        allowlist_of(config).load(dump_model(state.model))
    except (ExplainerError, ConfigError, ForeignTypeError) as error:
        raise ConfigError(f"models.{model_id}: {error}") from None
    except SourceError as error:
        raise ConfigError(f"models.{model_id}: watch_loss.reference: {error}") from None
    try:
        take_reference(state)
    except ExplainerError as error:
        raise ConfigError(f"models.{model_id}: watch_loss.reference: {error}") from None
    except Exception as error:  # noqa: BLE001 - a model is the user's code: whatever it raises is about these rows
        where = _columns_of_failure(state, str(error))
        said = f"the model fails on these rows{where}: {shorten(error)}"
        raise ConfigError(f"models.{model_id}: watch_loss.reference: {said}") from None
    return state


def _columns_of_failure(state: ModelState, said: str) -> str:
    """Return the columns of a hold-out on which a model may have failed.

    Those that it lacks; else those that are numbers in some rows and something else in others; else those that the
    exception names.
    """
    rows = [] if state.settings.holdout is None else [x for x, _ in state.settings.holdout.rows]
    names = dict.fromkeys(name for x in rows for name in x)
    if lacking := [name for name in features_of(state.model) if name not in names]:
        return f", which lack {_quoted(lacking)}"
    kinds = {name: {_is_number(x.get(name)) for x in rows} for name in names}
    if mixed := [name for name, of in kinds.items() if len(of) > 1]:
        return f", where {_quoted(mixed)} {'is' if len(mixed) == 1 else 'are'} no number in some"
    named = [
        name for name in names if re.search(rf"""['"]{re.escape(str(name))}['"]|- {re.escape(str(name))}\b""", said)
    ]
    return f", at {_quoted(named)}" if named else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not is_missing(value)


def _quoted(names: Sequence[Any]) -> str:
    return show_names(list(map(repr, names)))

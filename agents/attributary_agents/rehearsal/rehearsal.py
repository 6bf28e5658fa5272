"""Rehearses one model: some rows through the worker's own functions, the state stored and restored, and what was found.

Nothing is sent and nothing is kept: the partition, its state table and its records are made for the rehearsal alone.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from attributary_explainers import ExplainerError

from ..config.settings import Config
from ..errors import ConfigError
from ..kafka.producing import encode_value
from ..models.from_mlflow.flavours import labels_only
from ..models.from_mlflow.pyfunc import is_pyfunc
from ..models.model_state import ModelState, check_model
from ..models.warm_up import warm_up
from .finding import MADE_UP, Rehearsal
from .rows import known_features, made_up_rows
from .stage import Stage

_NO_FEATURES: Mapping[str, str] = {}


def rehearse(
    config: Config,
    model_id: str,
    values: Sequence[bytes] | None = None,
    rows: str = MADE_UP,
    more: Sequence[bytes] = (),
) -> Rehearsal:
    """Take some records of a model all the way, and store and restore its state in between.

    Parameters
    ----------
    values
        Values of records of the observations topic; None makes some up, where the features are known.
    rows
        Says where the values are from.
    more
        Values from there that are looked at, and not taken all the way.
    """
    found = Rehearsal(model_id)
    with quiet():
        try:
            state = check_model(model_id, config.settings_of(model_id))
            if state.config.registered is not None:
                found.registered = f"{state.config.registered} is version {state.version} now"
            if is_pyfunc(state.model):
                found.doubts.append(labels_only())
            if values is None:
                values = _made_up(state)
            if values:
                found.rows = rows
                Stage(*config.with_one_of(model_id), found).play(values, more)
            else:
                own = config.model_copy(update={"models": {model_id: config.settings_of(model_id)}})
                found.evaluated = f"{warm_up(own)[model_id]} (two made-up numbers)"
        except (ConfigError, ExplainerError) as error:
            found.problem = str(error).removeprefix(f"models.{model_id}: ")
    return found


def made_up_values(config: Config, model_id: str, n_features: int | None = None) -> list[bytes]:
    """Return values of records that are made up of a model's features; none where nobody says which it has.

    Parameters
    ----------
    n_features
        So many numbers, where nobody says.
    """
    with quiet():
        state = check_model(model_id, config.settings_of(model_id))
        unknown = {f"feature{k}": "number" for k in range(n_features or 0)}
        return _made_up(state, unknown)


def _made_up(state: ModelState, unknown: Mapping[str, str] = _NO_FEATURES) -> list[bytes]:
    features = known_features(state.config, state.model) or unknown
    if not features:
        return []
    made = made_up_rows(features, state.config, state.loss, None)
    try:
        prediction = state.together.function(made[0]["x"])
    except Exception:  # noqa: BLE001 - whatever the model raises on a made-up row, the rehearsal says
        prediction = None
    return [encode_value(value) for value in made_up_rows(features, state.config, state.loss, prediction)]


@contextmanager
def quiet() -> Iterator[None]:
    """Keep what a worker would log and warn of to the report: nothing of a rehearsal is about the stream."""
    ours = logging.getLogger("attributary_agents")
    level = ours.level
    ours.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ours.setLevel(level)

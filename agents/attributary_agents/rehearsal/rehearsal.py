"""Rehearsal of a model: rows through the worker's own functions.

The state is stored and restored as well, and the findings are returned.

Nothing is sent and nothing is kept: the partition, its state table and its records are made for the rehearsal alone.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from attributary_explainers import ExplainerError
from attributary_topics import OBSERVATION, InvalidRecordError, Needs, Observation, decode_arrival

from ..config.settings import Config
from ..errors import ConfigError
from ..kafka.observations import encode_value
from ..models.artefacts.served.errors import NotNowError, ServedError
from ..models.artefacts.served.model import ServedModel
from ..models.from_mlflow.flavours import labels_only
from ..models.from_mlflow.pyfunc import is_pyfunc
from ..models.guards.limits import features_of_model
from ..models.model_state import ModelState
from ..models.trial import check_model
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
    """Take records of a model all the way; store and restore its state.

    The state is stored and restored before the last record.

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
            if isinstance(state.model, ServedModel):
                _check_endpoint(state, values)
            if values is None:
                values = _made_up(state)
            if values:
                found.rows = rows
                Stage(*config.with_one_of(model_id), found).play(values, more)
            else:
                found.evaluated = f"{_evaluated(config, model_id, state)} (two made-up numbers)"
        except (ConfigError, ExplainerError) as error:
            found.problem = str(error).removeprefix(f"models.{model_id}: ")
    return found


def _evaluated(config: Config, model_id: str, state: ModelState) -> str:
    """Say how a model of unknown features evaluates two made-up numbers.

    Only if it can read them.
    """
    tried = Rehearsal(model_id)
    if not isinstance(state.model, ServedModel):  # an endpoint is not asked for what is made up
        Stage(*config.with_one_of(model_id), tried).play(_made_up(state, {"a": "number", "b": "number"}))
    return tried.evaluated if tried.n_used and tried.evaluated else "known with the first observation"


def _check_endpoint(state: ModelState, values: Sequence[bytes] | None) -> None:
    """Check a served model with the first row, before all rows wait for it.

    Raises
    ------
    ConfigError
        It does not answer.
    """
    config, rows = state.config, []
    for value in values or ():
        with suppress(InvalidRecordError):
            found = decode_arrival(state.model_id, value, OBSERVATION, Needs(label=False), features=config.features)
            if isinstance(found, Observation):
                rows = [features_of_model(found.x, config.missing)]
                break
    features = known_features(config, state.model)
    if not rows and features:
        rows = [made_up_rows(features, config, state.loss, None)[0]["x"]]
    try:
        if rows:
            state.model.predict_many(rows)
    except NotNowError as error:
        raise ConfigError(
            f"the endpoint does not answer: {error}. Is model.served right, and is it there for this machine? A worker "
            "would wait for it"
        ) from None
    except ServedError as error:
        where = state.model.served.url
        raise ConfigError(f"the endpoint {where} does not take a row: {error}") from None


def made_up_values(config: Config, model_id: str, n_features: int | None = None) -> list[bytes]:
    """Return made-up values of a model's records; none if features unknown.

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
    """Silence a worker's logs and warnings: a rehearsal is no stream.

    Only the report tells of a rehearsal.
    """
    ours = logging.getLogger("attributary_agents")
    level = ours.level
    ours.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        ours.setLevel(level)

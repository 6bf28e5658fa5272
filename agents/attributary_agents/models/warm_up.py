"""Compiles kernels before the worker joins its group: an observation must not wait for a compiler."""

from __future__ import annotations

import logging
import random
import time
import warnings
from typing import Any

from attributary_explainers import model_kind

from ..config.settings import Config
from .model_state import new_state

logger = logging.getLogger(__name__)

_OBSERVATIONS = 40
_LONG_S = 2.0
_KINDS = 30
_LATER = "known with the first observation"


def warm_up(config: Config) -> dict[str, str]:
    """Let a new copy of every configured model predict, be explained and learn some made-up observations.

    The first time on a machine this compiles, which takes seconds; after that the code comes from numba's cache, beside
    the installed package or in NUMBA_CACHE_DIR. A model that cannot read them compiles with its first own observation.

    Returns
    -------
    How each model is evaluated, by model id.
    """
    began = time.monotonic()
    of_kind: dict[str, str] = {}  # thousands of models are a few kinds of model
    found = {}
    for model_id, model in config.models.items():
        kind = repr((model.spec, model.loss, model.explainers))
        if kind not in of_kind:
            of_kind[kind] = _run(model_id, config) if len(of_kind) < _KINDS else _LATER
        found[model_id] = of_kind[kind]
    took = time.monotonic() - began
    if took > _LONG_S:
        logger.info("compiled in %.1f s; where the cache can be kept, only the first start takes so long", took)
    return found


def _run(model_id: str, config: Config) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they will be said about real observations
        try:
            state = new_state(model_id, config.models[model_id])
            together = state.together
            if together.paths:  # the reason for all models of its type
                return f"row by row, {next(iter(together.paths))}"
            numbers = model_kind(state.model) == "regressor"
            rng = random.Random(1)
            for _ in range(_OBSERVATIONS):
                x = {"a": rng.random(), "b": rng.random()}
                y: Any = x["a"] if numbers else x["a"] > x["b"]
                together.explain_one(x, y)
                state.model.learn_one(x, y)
        except Exception as error:  # noqa: BLE001 - made-up observations: what is wrong with them says nothing
            logger.debug("models.%s was not made ready: %r", model_id, error)
            return _LATER
    if together.paths["fast"]:
        return "by its fast path"
    return f"row by row, {together.paths.most_common(1)[0][0]}"

"""Compiles the kernels of the configured models before the worker joins its group: no observation waits for that."""

from __future__ import annotations

import logging
import warnings

from attributary_explainers.compiled import compilations, where_kept
from attributary_explainers.warming import rehearse

from ..allocator import let_compiler_go
from ..config.settings import Config
from ..lean_imports import import_for
from .artefacts.served.answers import Answers, answering
from .model_state import new_state

logger = logging.getLogger(__name__)

_OBSERVATIONS = 40
_KINDS = 30
_LATER = "known with the first observation"


def warm_up(config: Config) -> dict[str, str]:
    """Let a new copy of every configured model predict, be explained and learn some made-up observations.

    The first time on a machine this compiles the kernels that the models need, which takes seconds; after that they
    come from disk. A model that cannot read made-up observations does it with its first own one.

    Returns
    -------
    How each model is evaluated, by its id.
    """
    of_kind: dict[str, str] = {}  # thousands of models are a few kinds of model
    found = {}
    for model_id, model in config.models.items():
        if model.registered is not None:
            found[model_id] = _LATER
            continue
        kind = repr((model.spec, model.loss, model.explainers))
        if kind not in of_kind:
            of_kind[kind] = _rehearse(model_id, config) if len(of_kind) < _KINDS else _LATER
        found[model_id] = of_kind[kind]
    let_compiler_go()  # until a kernel has to be compiled or loaded
    if compilations.n:
        logger.info("compiled %d kernels in %.1f s: %s", compilations.n, compilations.seconds, where_kept())
    return found


def _rehearse(model_id: str, config: Config) -> str:
    # A model that is served is not asked for what is made up.
    with warnings.catch_warnings(), answering(Answers()):
        warnings.simplefilter("ignore")  # they will be said about real observations
        try:
            state = new_state(model_id, config.models[model_id])
            import_for(state)
            return rehearse(state.together, _OBSERVATIONS)
        except Exception as error:  # noqa: BLE001 - made-up observations: what is wrong with them says nothing
            logger.debug("models.%s was not made ready: %r", model_id, error)
            return _LATER

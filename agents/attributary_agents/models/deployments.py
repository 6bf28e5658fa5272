"""Models made from records of the models topic, ready to be explained.

Where no such model can be made, the error says why. `attributary models deploy` calls `prepare`, and so does the
process of its own in which a worker builds (`building`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attributary_explainers import ExplainerError, OnnxModel, dump_model
from attributary_explainers.models.learning import learn_function
from attributary_explainers.wording import show_names
from attributary_topics import Deployment, InvalidRecordError, decode_deployment

from ..config.mlflow import MlflowModel
from ..config.models import ModelConfig
from ..config.settings import Config
from ..errors import AttributaryError, DeploymentError, ForeignTypeError, NotAllowedError, told
from .artefacts import Columns, load_artefact, read_artefact
from .factory import build_model
from .from_mlflow.loading import allowed_names, check_allowed, load_deployed
from .model_state import new_state
from .versions import Version, allowlist_of


def decode(config: Config, key: bytes | None, value: bytes | None) -> Deployment:
    """Return the deployment that a record describes.

    Raises
    ------
    InvalidRecordError
        The record has not the form of a deployment, or no model of its id is configured.
    """
    deployment = decode_deployment(key, value, max_bytes=config.max_observation_bytes)
    if config.find(deployment.model_id) is None:
        known = show_names(config.models)
        expected = f"one of the configured models ({known})"
        if deployment.model_id in config.models:
            expected = "the id of one model: a deployment is of one, and not of all that a template matches"
        raise InvalidRecordError("unknown_model", "key", expected, deployment.model_id)
    return deployment


@dataclass(frozen=True)
class Job:
    """Everything that a deployed model is made from, without secrets.

    Of the configuration it holds the part that matters.
    """

    deployment: Deployment
    model: ModelConfig
    artefacts: Path | None
    allowed: list[str]
    registered: frozenset[str] = frozenset()
    """Models of MLflow's registry that it may be a version of."""
    folder: Path | None = None
    """Where the files of such a version are."""

    @classmethod
    def of(cls, config: Config, deployment: Deployment, folder: Path | None = None) -> Job:
        """Take the settings that a deployment needs from the configuration."""
        model = config.settings_of(deployment.model_id)
        names = allowed_names(config.mlflow, model)
        if isinstance(model.model, MlflowModel):
            model = model.model_copy(update={"model": model.model.without_secrets})
        return cls(deployment, model, config.artefacts.directory, config.control.allowed, names, folder)


def prepare(job: Job, *, in_full: bool = False) -> bytes:
    """Make a model, check that it is explainable, and return its bytes.

    It has to be explainable as configured.

    Parameters
    ----------
    in_full
        Whether messages may hold the texts of exceptions that are not ours, and with them what the model has read: on
        the machine of the one who deploys, and not where others read the dead letters.

    Raises
    ------
    DeploymentError
        The model cannot be made or used; the reason is `not_allowed`, `wrong_artefact` or `unusable_model`.
    MemoryError
        It needs more memory than there is.
    """
    deployment = job.deployment
    try:
        model = _make(job, in_full)
        if model is None:
            raise DeploymentError("it makes None, which is no model")
        new_state(deployment.model_id, job.model, Version(deployment.version, deployment.spec, model))
        if job.model.learn:
            learn_function(model)
        blob = dump_model(model)
        allowlist_of(job.model).load(blob)
    except (DeploymentError, MemoryError):
        raise
    except ForeignTypeError as error:
        raise NotAllowedError(f"the model could be made, but not be read from its stored state: {error}") from error
    except (AttributaryError, ExplainerError) as error:
        raise DeploymentError(_said(error, in_full)) from error
    except Exception as error:  # a model is the user's code: whatever it raises, it cannot be used
        raise DeploymentError(told(error, in_full)) from error
    return blob


def _said(error: Exception, in_full: bool) -> str:
    """Return our error message without the texts of foreign exceptions.

    The type and place of the foreign exception replace its text, unless `in_full`.
    """
    said, cause = str(error), error.__cause__ or error.__context__
    while cause is not None and not in_full:
        if not isinstance(cause, AttributaryError | ExplainerError) and str(cause):
            said = said.replace(str(cause), told(cause))
        cause = cause.__cause__ or cause.__context__
    return said


def _make(job: Job, in_full: bool) -> Any:
    spec = job.deployment.spec
    if "artefact" in spec:
        content = read_artefact(job.artefacts, spec["artefact"], spec["sha256"])
        model = load_artefact(spec["artefact"], content, job.allowed, Columns.of(job.model), in_full=in_full)
        if isinstance(model, OnnxModel):
            model.try_memory()
        return model
    if "mlflow" in spec:
        check_allowed(spec, job.registered)
        return load_deployed(spec, job.artefacts, job.folder, job.allowed, in_full=in_full)
    return build_model(spec, job.allowed, in_full=in_full, declared=job.model.features)

"""Makes a model that can be explained from a record of the models topic, or says why it cannot.

The worker and `attributary models deploy` both call `prepare`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from attributary_explainers import ExplainerError, dump_model, load_model
from attributary_topics import Deployment, InvalidRecordError, decode_deployment

from ..config.settings import Config
from ..errors import AttributaryError, DeploymentError, NotAllowedError
from .factory import build_model
from .model_state import new_state
from .versions import Version


def decode(config: Config, key: bytes | None, value: bytes | None) -> Deployment:
    """Return the deployment that a record describes.

    Raises
    ------
    InvalidRecordError
        The record has not the form of a deployment, or no model of its id is configured.
    """
    deployment = decode_deployment(key, value, max_bytes=config.max_observation_bytes)
    if deployment.model_id not in config.models:
        known = ", ".join(config.models)
        raise InvalidRecordError("unknown_model", "key", f"one of the configured models ({known})", deployment.model_id)
    return deployment


def prepare(config: Config, deployment: Deployment) -> bytes:
    """Make the model, check that it can be explained as configured, and return its bytes.

    Raises
    ------
    DeploymentError
        The model cannot be made or used; the reason is `not_allowed`, `wrong_artefact` or `unusable_model`.
    """
    model_config = config.models[deployment.model_id]
    try:
        model = _make(config, deployment.spec)
        if model is None:
            raise DeploymentError("it makes None, which is no model")
        new_state(deployment.model_id, model_config, Version(deployment.version, deployment.spec, model))
        blob = dump_model(model)
    except DeploymentError:
        raise
    except (AttributaryError, ExplainerError) as error:
        raise DeploymentError(str(error)) from error
    except Exception as error:  # a model is the user's code: whatever it raises, it cannot be used
        raise DeploymentError(f"{type(error).__name__}: {error}") from error
    return blob


def _make(config: Config, spec: dict[str, Any]) -> Any:
    if "artefact" in spec:
        return load_model(read_artefact(config, spec["artefact"], spec["sha256"]))
    return build_model(spec, config.control.allowed)


def read_artefact(config: Config, name: str, sha256: str | None) -> bytes:
    """Return the content of a model's file.

    Parameters
    ----------
    name
        Path below `artefacts.directory`.
    sha256
        Hash that it must have; None takes any, to find out what it is.

    Raises
    ------
    DeploymentError
        There is no such file, or it has another hash.
    NotAllowedError
        No directory is configured, or the path leads out of it.
    """
    directory = config.artefacts.directory
    if directory is None:
        raise NotAllowedError("artefacts are not allowed: set artefacts.directory in the workers' configuration")
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise NotAllowedError(f"artefact {name!r}: expected a path below artefacts.directory, without `..`")
    try:
        path = (directory / name).resolve(strict=True)
        if not path.is_relative_to(directory.resolve()):
            raise NotAllowedError(f"artefact {name!r} is a link out of artefacts.directory")
        content = path.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: links in a circle
        raise DeploymentError(f"cannot read the artefact {name!r}: {error}", "wrong_artefact") from None
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise DeploymentError(f"artefact {name!r} has the sha256 {found}, not {sha256}", "wrong_artefact")
    return content

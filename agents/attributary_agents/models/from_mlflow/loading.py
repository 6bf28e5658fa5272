"""Loading of MLflow models in this process.

A configuration names them, or a record of the models topic.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attributary_topics import Deployment

from ...config.mlflow import MlflowConfig, MlflowModel, Registered
from ...config.models import ModelConfig
from ...config.settings import Config
from ...errors import ConfigError, DeploymentError, FilesAwayError, NotAllowedError, RegistryAwayError
from .flavours import load_folder
from .folders import check_digest, copied, digest_of
from .registry import Registry

logger = logging.getLogger(__name__)


def load_configured(config: MlflowModel) -> Any:
    """Load the MLflow model that the configuration names.

    It is the model of a folder, or the registry's current version.

    Raises
    ------
    ConfigError
        It is not there, is not the one that is meant, or cannot be loaded.
    """
    if config.registered is not None:
        return load_present(config)[2]
    try:
        with copied(config.directory, config.mlflow) as folder:
            if config.sha256 is None:
                raise ConfigError(f"model: {config.mlflow} has no hash; write sha256: {digest_of(folder)}")
            check_digest(folder, config.mlflow, config.sha256, "the configuration")
            return load_folder(config.mlflow, folder, config.allowed)
    except DeploymentError as error:
        raise ConfigError(f"model: {error}") from error


def load_present(config: MlflowModel) -> tuple[str, dict[str, Any], Any]:
    """Return version, spec and model that an alias names at this moment.

    The spec has the form that it has in a deployment.

    Of commands that try a model, such as `check`; workers follow the models topic.

    Raises
    ------
    ConfigError
        There is none, or the registry cannot be asked.
    """
    assert config.registered is not None
    try:
        with Registry(config.registry).present(config.registered) as (exact, folder, digest):
            model = load_folder(str(exact), folder, config.allowed)
            return str(exact.version), {"mlflow": str(exact), "sha256": digest}, model
    except RegistryAwayError as error:
        raise ConfigError(f"model.mlflow: {config.registered}: the registry cannot be asked: {error}") from error
    except (DeploymentError, FilesAwayError) as error:
        raise ConfigError(str(error)) from error


def check_registered(config: Config) -> None:
    """Ask the registry for the version of each configured model, at a start.

    Where the registry is away the start goes on: the topic may know the versions.

    Raises
    ------
    ConfigError
        It has no such model, alias or version, or there is nothing to ask it with.
    """
    registry = Registry(config.mlflow)
    for model_id, model in config.models.items():
        if model.registered is None:
            continue
        try:
            registry.version_of(model.registered)
        except RegistryAwayError as error:
            logger.warning(
                "MLflow's registry cannot be asked: %s. Models have the versions that they had, and others wait", error
            )
            return
        except DeploymentError as error:
            raise ConfigError(f"models.{model_id}: {error}") from None


@contextmanager
def fetched_files(config: Config, spec: dict[str, Any]) -> Iterator[Path | None]:
    """Yield the registry files that a deployment needs, or None.

    Raises
    ------
    DeploymentError
        There is no such version, or it cannot be had.
    """
    registered = registered_of(spec)
    if registered is None:
        yield None
        return
    try:
        with Registry(config.mlflow).present(registered) as (_, folder, _digest):
            yield folder
    except RegistryAwayError as error:
        raise DeploymentError(f"{registered}: the registry cannot be asked: {error}", "wrong_artefact") from error
    except FilesAwayError as error:
        raise DeploymentError(str(error), "wrong_artefact") from error


def pinned(config: Config, uri: str) -> dict[str, Any]:
    """Return the current version and hash of an MLflow model.

    They have the form of a record of the models topic.

    Parameters
    ----------
    uri
        models:/NAME@ALIAS, models:/NAME/VERSION, or a folder below `artefacts.directory`.

    Raises
    ------
    AttributaryError
        There is none, or the registry cannot be asked.
    """
    if not uri.startswith("models:"):
        with copied(config.artefacts.directory, uri) as folder:
            return {"mlflow": uri, "sha256": digest_of(folder)}
    try:
        registered = Registered.read(uri)
    except ValueError as error:
        raise ConfigError(f"mlflow: {error}") from None
    try:
        with Registry(config.mlflow).present(registered) as (exact, _, digest):
            return {"version": exact.version, "mlflow": str(exact), "sha256": digest}
    except DeploymentError as error:
        raise ConfigError(str(error)) from error


def registered_of(spec: dict[str, Any]) -> Registered | None:
    """Return the registry version that a deployment names, or None."""
    uri = str(spec.get("mlflow", ""))
    return Registered.read(uri) if uri.startswith("models:") else None


def with_remedy(deployment: Deployment, error: DeploymentError) -> DeploymentError:
    """Add the command that repeats the deployment to a registry error.

    No alias moves when the cause is mended. Errors of other deployments are returned as they are.
    """
    if registered_of(deployment.spec) is None:
        return error
    command = f"attributary models deploy {deployment.model_id} --mlflow {deployment.spec['mlflow']}"
    told = str(error).rstrip(".")
    return DeploymentError(
        f"{told}. The model keeps what it has: register another version and move the alias, or mend the cause and send "
        f"this one again: `{command}`",
        error.reason,
    )


def allowed_names(config: MlflowConfig, model: ModelConfig) -> frozenset[str]:
    """Return the registered models that records may name for this model.

    A record of the models topic may name versions of them.
    """
    own = () if model.registered is None else (model.registered.name,)
    return frozenset((*config.allowed, *own))


def check_allowed(spec: dict[str, Any], names: frozenset[str]) -> None:
    """Raise NotAllowedError for a registered model that is not allowed.

    Allowed are the registered models that the configuration names.
    """
    named = registered_of(spec)
    if named is not None and named.name not in names:
        has = ", ".join(sorted(names)) or "none"
        raise NotAllowedError(
            f"mlflow {named}: a record of the models topic may name versions of the registered model that "
            f"`model.mlflow` names, and of those in mlflow.allowed ({has}); add {named.name!r} in the workers' "
            "configuration"
        )


def load_deployed(
    spec: dict[str, Any], directory: Path | None, folder: Path | None, allowed: Sequence[str], *, in_full: bool
) -> Any:
    """Return the model that a deployment names.

    Parameters
    ----------
    directory
        `artefacts.directory`.
    folder
        Where the files of the version have been put, if it is one of the registry.
    allowed, in_full
        As for `load_folder`.

    Raises
    ------
    DeploymentError
        It is not there, is not the one that is meant, or cannot be loaded.
    """
    name, sha256 = spec["mlflow"], spec["sha256"]
    if registered_of(spec) is None:
        with copied(directory, name) as copy:
            check_digest(copy, name, sha256)
            return load_folder(name, copy, allowed, in_full=in_full)
    if folder is None:
        raise DeploymentError(f"{name}: its files have not been fetched", "wrong_artefact")
    check_digest(folder, name, sha256)
    return load_folder(name, folder, allowed, in_full=in_full)

"""Loading of MLflow models in this process.

A configuration names them, or a record of the models topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_topics import Deployment

from ...config.mlflow import MlflowConfig, MlflowModel, Registered
from ...config.models import ModelConfig
from ...config.settings import Config
from ...errors import ConfigError, DeploymentError, FilesAwayError, NotAllowedError, RegistryAwayError
from .answers import digest_in, question, resolved
from .asking import fetch, resolve, told_by
from .flavours import load_folder
from .folders import check_digest, copied, digest_of

SCRATCH = "attributary-mlflow-"


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

    Of commands that try a model, such as `check`; workers are told by the models topic.

    Raises
    ------
    ConfigError
        There is none, or the registry cannot be asked.
    """
    wanted = config.registered
    assert wanted is not None
    try:
        version = present_version(config.registry, wanted)
        uri = f"models:/{wanted.name}/{version}"
        with fetched(config.registry, uri) as (folder, digest):
            return version, {"mlflow": uri, "sha256": digest}, load_folder(uri, folder, config.allowed)
    except RegistryAwayError as error:
        raise ConfigError(f"model.mlflow: {wanted}: the registry cannot be asked: {error}") from error
    except (DeploymentError, FilesAwayError) as error:
        raise ConfigError(str(error)) from error


def present_version(config: MlflowConfig, wanted: Registered) -> str:
    """Return the version that this names now, asked in this process.

    Raises
    ------
    ConfigError
        There is none.
    RegistryAwayError
        The registry cannot be asked.
    """
    with told_by(config.environment()):
        (found,) = resolve([question(wanted)])
    answer = resolved(wanted, found)
    if "missing" in answer:
        raise ConfigError(answer["missing"])
    return answer["version"]


@contextmanager
def fetched(config: MlflowConfig, uri: str) -> Iterator[tuple[Path, str]]:
    """Yield the files of a registry version, and their digest.

    This process asks the registry.

    Raises
    ------
    DeploymentError
        There is no such version.
    RegistryAwayError
        The registry cannot be asked.
    FilesAwayError
        The files cannot be had.
    """
    with TemporaryDirectory(prefix=SCRATCH) as scratch:
        folder = Path(scratch) / "model"
        folder.mkdir()
        with told_by(config.environment()):
            answer = fetch(question(Registered.read(uri)), str(folder))
        yield folder, digest_in(Registered.read(uri), answer)


@contextmanager
def fetched_files(config: Config, spec: dict[str, Any]) -> Iterator[Path | None]:
    """Yield the registry files that a deployment needs, or None.

    This process asks the registry.

    Raises
    ------
    DeploymentError
        The configuration does not allow it, there is no such version, or the registry cannot be asked.
    """
    if registered_of(spec) is None:
        yield None
        return
    try:
        with fetched(config.mlflow, spec["mlflow"]) as (folder, _):
            yield folder
    except RegistryAwayError as error:
        raise DeploymentError(f"{spec['mlflow']}: the registry cannot be asked: {error}", "wrong_artefact") from error
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
        wanted = Registered.read(uri)
    except ValueError as error:
        raise ConfigError(f"mlflow: {error}") from None
    version = present_version(config.mlflow, wanted)
    exact = f"models:/{wanted.name}/{version}"
    with fetched(config.mlflow, exact) as (_, digest):
        return {"version": version, "mlflow": exact, "sha256": digest}


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

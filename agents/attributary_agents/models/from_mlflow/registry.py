"""MLflow's registry: versions of aliases, files of versions.

MLflow's own client is imported with the first call, which takes some seconds and 80 MB. It finds its settings and
secrets in the environment of this process; processes that build models get no secrets.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attributary_explainers.wording import did_you_mean, show_names

from ...config.mlflow import MlflowConfig, Registered
from ...errors import DeploymentError, FilesAwayError, RegistryAwayError
from ...logs import without_user
from .folders import digest_of

EXTRA = "model.mlflow needs mlflow: pip install 'attributary[mlflow]'"

SCRATCH = "attributary-mlflow-"
"""Beginning of the names of folders with fetched files."""

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Settings of MLflow's client beside the configuration, unless the environment has others."""

MOST_NAMES = 100
"""Registered models, or versions, that are looked at for what may be meant."""

_SHOWN, _LONGEST = 10, 300

_QUERY = re.compile(r"(\w://[^\s?'\"]+)\?[^\s'\"]+")
"""An address with a query, which may be a signature."""


class Registry:
    """Registry of MLflow; each call blocks, and several threads may make them.

    All of them raise

    - `RegistryAwayError` where the registry cannot be asked now,
    - `DeploymentError` where it lacks what is meant, with a line that says what it has instead,
    - `ConfigError` where the file of a secret cannot be read.
    """

    def __init__(self, config: MlflowConfig) -> None:
        self._config = config

    def version_of(self, registered: Registered) -> str:
        """Return the version that an alias names now, or that is named."""
        client = self._client()
        try:
            if registered.version is not None:
                return str(client.get_model_version(registered.name, registered.version).version)
            aliases = client.get_registered_model(registered.name).aliases
        except Exception as error:  # noqa: BLE001 - of the client, the database or the network
            raise _failure(client, registered, error) from None
        if registered.alias not in aliases:
            there = ", ".join(sorted(aliases)) or "none"
            raise _lack(registered, f"no alias '{registered.alias}'; it has {there}")
        return str(aliases[registered.alias])

    def fetch(self, registered: Registered, folder: Path) -> str:
        """Put the files of a version into an empty folder; return their digest.

        Raises
        ------
        FilesAwayError
            There is such a version, and its files cannot be had now.
        """
        client = self._client()
        from mlflow.artifacts import download_artifacts

        version = self.version_of(registered)
        try:
            download_artifacts(artifact_uri=str(registered), dst_path=str(folder))
            if not (folder / "MLmodel").is_file():  # of a volume that is not mounted the client gives an empty folder
                place = client.get_model_version_download_uri(registered.name, version)
                raise FileNotFoundError(f"there is no file MLmodel in {place}")
        except FileNotFoundError as error:
            raise FilesAwayError(f"{registered}: its files cannot be had: {public(str(error))}") from None
        except Exception as error:  # noqa: BLE001 - as in `version_of`
            if _is_lack(error):
                raise _failure(client, registered, error) from None
            raise FilesAwayError(f"{registered}: its files cannot be had: {_line_of(error)}") from None
        try:
            return digest_of(folder)
        except DeploymentError as error:
            raise _lack(registered, str(error)) from None

    @contextmanager
    def present(self, registered: Registered) -> Iterator[tuple[Registered, Path, str]]:
        """Yield the exact version that is meant, its files and their digest.

        It raises what `fetch` does.
        """
        exact = Registered(registered.name, version=self.version_of(registered))
        with TemporaryDirectory(prefix=SCRATCH) as scratch:
            yield exact, Path(scratch), self.fetch(exact, Path(scratch))

    def _client(self) -> Any:
        if importlib.util.find_spec("mlflow") is None:
            raise DeploymentError(EXTRA, "wrong_artefact")
        for name, value in SETTINGS.items():
            os.environ.setdefault(name, value)
        os.environ.update(self._config.environment())
        uri = os.environ.get("MLFLOW_REGISTRY_URI") or os.environ.get("MLFLOW_TRACKING_URI")
        if not uri:
            missing = "mlflow.tracking_uri is not given, and neither is MLFLOW_TRACKING_URI"
            raise DeploymentError(missing, "wrong_artefact")
        # The client would make a new, empty one.
        if uri.startswith("sqlite:///") and not (path := Path(uri.removeprefix("sqlite:///"))).is_file():
            raise RegistryAwayError(f"there is no database {path}")
        from mlflow import MlflowClient

        return MlflowClient()


def public(text: str) -> str:
    """Remove passwords and signatures of addresses from MLflow's messages.

    The messages go to dead letters.

    Examples
    --------
    >>> public("403 Forbidden for url: https://me:secret@store/4/MLmodel?X-Amz-Signature=9f2c")
    '403 Forbidden for url: https://***@store/4/MLmodel?***'
    """
    return _QUERY.sub(r"\1?***", without_user(text))


def _failure(client: Any, registered: Registered, error: Exception) -> Exception:
    """Return the error for an exception of the client: a lack, or no answer."""
    if not _is_lack(error):
        return RegistryAwayError(_line_of(error))
    try:
        names = sorted(model.name for model in client.search_registered_models(max_results=MOST_NAMES))
        if registered.name not in names and len(names) < MOST_NAMES:
            near = did_you_mean(registered.name, names) or f"; it has {show_names(names) if names else 'none'}"
            return _lack(registered, f"no model '{registered.name}' in the registry{near}")
        found = client.search_model_versions(f"name = '{registered.name}'", max_results=MOST_NAMES)
        versions = [str(number) for number in sorted((int(one.version) for one in found), reverse=True)]
    except Exception as other:  # noqa: BLE001 - as in `version_of`
        return RegistryAwayError(_line_of(other))
    if registered.version is not None and registered.version not in versions:
        more = ", …" if len(versions) > _SHOWN else ""
        there = ", ".join(versions[:_SHOWN]) or "none"
        return _lack(registered, f"no version {registered.version}; it has {there}{more}")
    return _lack(registered, public(" ".join(str(error).split())[:_LONGEST]))


def _lack(registered: Registered, what: str) -> DeploymentError:
    return DeploymentError(f"model.mlflow: {registered}: {what}", "wrong_artefact")


def _is_lack(error: Exception) -> bool:
    return getattr(error, "error_code", None) == "RESOURCE_DOES_NOT_EXIST"


def _line_of(error: Exception) -> str:
    text = " ".join(str(error).split())
    if len(text) > _LONGEST:  # the cause of the causes stands at the end
        text = f"{text[: _LONGEST // 3]} … {text[-2 * _LONGEST // 3 :]}"
    return public(f"{type(error).__name__}: {text}")

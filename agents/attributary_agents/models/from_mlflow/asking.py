"""Questions to MLflow's registry, through MLflow's own client.

They are asked in a separate process, or in the process of a command. Of ours this imports next to nothing, for that
process is there as long as aliases are looked at. Questions and answers are plain data: `{"name", "alias", "version"}`;
`{"version": "4"}`, `{"lacks": alias, version, model, extra, uri or files, …}`, `{"away": why}` where the registry could
not be asked, or `{"unfetched": why}` where it could, and the files could not be had.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import DeploymentError
from .folders import digest_of

SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "ERROR",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""What MLflow's client is told beside the configuration, unless the environment says otherwise."""

MOST_NAMES = 100
"""Registered models, or versions, that are looked at for what may be meant."""

_LONGEST = 300

Answer = dict[str, Any]


@contextmanager
def told_by(settings: dict[str, str]) -> Iterator[None]:
    """Give MLflow's client its settings in the environment during the block."""
    before = dict(os.environ)
    os.environ.update({**{name: value for name, value in SETTINGS.items() if name not in before}, **settings})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def resolve(wanted: list[dict[str, Any]]) -> list[Answer]:
    """Return the current version of each wanted model, or why it is missing."""
    if (fault := _why_not()) is not None:
        return [fault] * len(wanted)
    from mlflow import MlflowClient

    client, answers = MlflowClient(), []
    for one in wanted:
        try:
            answers.append(_resolved(client, one))
        except Exception as error:  # noqa: BLE001 - of the client, the database or the network
            answers.append(_failed(client, one, error))
    return answers


def fetch(wanted: dict[str, Any], into: str) -> Answer:
    """Put the files of a version into a folder, and return their digest."""
    if (fault := _why_not()) is not None:
        return fault
    from mlflow import MlflowClient
    from mlflow.artifacts import download_artifacts

    client, is_there = None, False
    try:
        client = MlflowClient()
        client.get_model_version(wanted["name"], wanted["version"])
        is_there = True
        uri = f"models:/{wanted['name']}/{wanted['version']}"
        found = Path(download_artifacts(artifact_uri=uri, dst_path=into))
        if found.resolve() != Path(into).resolve():
            return {"lacks": "files", "said": "they came to another place"}
        if not (found / "MLmodel").is_file():  # of a volume that is not mounted the client gives an empty folder
            place = client.get_model_version_download_uri(wanted["name"], wanted["version"])
            return {"unfetched": f"there is no file MLmodel in {place}"}
        return {"digest": digest_of(found)}
    except DeploymentError as error:
        return {"lacks": "files", "said": str(error)}
    except Exception as error:  # noqa: BLE001 - as in `resolve`
        if is_there and not _is_lack(error):
            return {"unfetched": _line_of(error)}
        return _failed(client, wanted, error)


def _resolved(client: Any, wanted: dict[str, Any]) -> Answer:
    if wanted["alias"] is None:
        return {"version": str(client.get_model_version(wanted["name"], wanted["version"]).version)}
    aliases = client.get_registered_model(wanted["name"]).aliases
    if wanted["alias"] in aliases:
        return {"version": str(aliases[wanted["alias"]])}
    return {"lacks": "alias", "has": sorted(aliases)}


def _failed(client: Any, wanted: dict[str, Any], error: Exception) -> Answer:
    if not _is_lack(error):
        return _away(error)
    try:
        names = sorted(one.name for one in client.search_registered_models(max_results=MOST_NAMES))
        if wanted["name"] not in names and len(names) < MOST_NAMES:
            return {"lacks": "model", "has": names}
        found = client.search_model_versions(f"name = '{wanted['name']}'", max_results=MOST_NAMES)
        versions = [str(number) for number in sorted((int(one.version) for one in found), reverse=True)]
        if wanted["version"] is not None and wanted["version"] not in versions:
            return {"lacks": "version", "has": versions}
    except Exception as other:  # noqa: BLE001 - as in `resolve`
        return _away(other)
    return {"lacks": "files", "said": " ".join(str(error).split())[:_LONGEST]}


def _is_lack(error: Exception) -> bool:
    return getattr(error, "error_code", None) == "RESOURCE_DOES_NOT_EXIST"


def _away(error: Exception) -> Answer:
    return {"away": _line_of(error)}


def _line_of(error: Exception) -> str:
    said = " ".join(str(error).split())
    if len(said) > _LONGEST:  # the cause of the causes stands at the end
        said = f"{said[: _LONGEST // 3]} … {said[-2 * _LONGEST // 3 :]}"
    return f"{type(error).__name__}: {said}"


def _why_not() -> Answer | None:
    """Return the answer where nothing can be asked; None where it can."""
    if importlib.util.find_spec("mlflow") is None:
        return {"lacks": "extra"}
    uri = os.environ.get("MLFLOW_REGISTRY_URI") or os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        return {"lacks": "uri"}
    # The client would make a new, empty one.
    if uri.startswith("sqlite:///") and not (path := Path(uri.removeprefix("sqlite:///"))).is_file():
        return {"away": f"there is no database {path}"}
    return None


def main() -> None:
    """Answer questions from stdin on stdout, a line each.

    The first line on stdin holds the settings, which may contain secrets.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the client prints is no answer
    with told_by(json.loads(sys.stdin.readline())):
        for line in sys.stdin:
            asked = json.loads(line)
            answer: Any = resolve(asked["resolve"]) if "resolve" in asked else fetch(asked["fetch"], asked["into"])
            answers.write(json.dumps(answer) + "\n")
            answers.flush()

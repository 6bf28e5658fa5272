"""Asks MLflow's registry by MLflow's own client: in a process of its own, or in that of a command.

An answer is plain data: `{"version": "4"}`, `{"missing": what is missing}`, or `{"away": why}` where it could not be
asked.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attributary_explainers.wording import did_you_mean, show_names

from ...config.mlflow import Registered
from ...errors import DeploymentError
from .flavours import EXTRA
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

NOT_SAID = "mlflow.tracking_uri is not given, and neither is MLFLOW_TRACKING_URI"

_LONGEST = 300
_KEY = "model.mlflow: "


@contextmanager
def told_by(settings: dict[str, str]) -> Iterator[None]:
    """Let MLflow's client find its settings in the environment for as long as this lasts."""
    before = dict(os.environ)
    os.environ.update({**{name: value for name, value in SETTINGS.items() if name not in before}, **settings})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def resolve(uris: list[str]) -> list[dict[str, str]]:
    """Return which version each of these URIs names now, or what is missing or wrong."""
    if (fault := _why_not()) is not None:
        return [fault] * len(uris)
    from mlflow import MlflowClient

    client, answers = MlflowClient(), []
    for uri in uris:
        wanted = Registered.read(uri)
        try:
            answers.append(_resolved(client, wanted))
        except Exception as error:  # noqa: BLE001 - of the client, the database or the network
            answers.append(_failed(client, wanted, error))
    return answers


def fetch(uri: str, into: str) -> dict[str, str]:
    """Put the files of a version into a folder, and return their digest."""
    if (fault := _why_not()) is not None:
        return fault
    from mlflow import MlflowClient
    from mlflow.artifacts import download_artifacts

    wanted = Registered.read(uri)
    try:
        client = MlflowClient()
        client.get_model_version(wanted.name, str(wanted.version))
        found = Path(download_artifacts(artifact_uri=uri, dst_path=into))
        if found.resolve() != Path(into).resolve():
            return {"missing": f"{uri}: its files came to another place"}
        return {"digest": digest_of(found)}
    except DeploymentError as error:
        return {"missing": f"{uri}: {error}"}
    except Exception as error:  # noqa: BLE001 - as in `resolve`
        return _failed(client, wanted, error)


def _resolved(client: Any, wanted: Registered) -> dict[str, str]:
    if wanted.alias is None:
        return {"version": str(client.get_model_version(wanted.name, str(wanted.version)).version)}
    aliases = client.get_registered_model(wanted.name).aliases
    if wanted.alias in aliases:
        return {"version": str(aliases[wanted.alias])}
    has = f"it has {', '.join(sorted(aliases))}" if aliases else "it has none"
    return {"missing": f"{_KEY}{wanted}: no alias '{wanted.alias}'; {has}"}


def _failed(client: Any, wanted: Registered, error: Exception) -> dict[str, str]:
    said = " ".join(str(error).split())[:_LONGEST]
    if getattr(error, "error_code", None) != "RESOURCE_DOES_NOT_EXIST":
        return {"away": f"{type(error).__name__}: {said}"}
    try:
        names = sorted(one.name for one in client.search_registered_models(max_results=100))
        if wanted.name not in names and len(names) < 100:
            near = did_you_mean(wanted.name, names) or (f"; it has {show_names(names)}" if names else "; it has none")
            return {"missing": f"{_KEY}{wanted}: no model '{wanted.name}' in the registry{near}"}
        if wanted.version is not None:
            found = client.search_model_versions(f"name = '{wanted.name}'", max_results=100)
            versions = sorted((int(one.version) for one in found), reverse=True)
            if wanted.version not in map(str, versions):
                has = ", ".join(map(str, versions[:10])) or "none"
                return {"missing": f"{_KEY}{wanted}: no version {wanted.version}; it has {has}"}
    except Exception as other:  # noqa: BLE001 - as in `resolve`
        return {"away": f"{type(other).__name__}: {' '.join(str(other).split())[:_LONGEST]}"}
    return {"missing": f"{_KEY}{wanted}: {said}"}


def _why_not() -> dict[str, str] | None:
    """Return the answer where nothing can be asked; None where it can."""
    if importlib.util.find_spec("mlflow") is None:
        return {"missing": EXTRA}
    uri = os.environ.get("MLFLOW_REGISTRY_URI") or os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        return {"missing": NOT_SAID}
    # The client would make a new, empty one.
    if uri.startswith("sqlite:///") and not (path := Path(uri.removeprefix("sqlite:///"))).is_file():
        return {"away": f"there is no database {path}"}
    return None


def serve(settings: dict[str, str], lines: Any, out: Any) -> None:
    """Answer one question a line, in JSON, until there is none: what a process of its own does."""
    import orjson

    with told_by(settings):
        for line in lines:
            asked = orjson.loads(line)
            answer: Any = resolve(asked["resolve"]) if "resolve" in asked else fetch(asked["fetch"], asked["into"])
            out.write(orjson.dumps(answer) + b"\n")
            out.flush()


def main() -> None:
    """Serve on stdin and stdout; the first line has the settings, which may hold secrets."""
    import orjson

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever the client prints is no answer
    serve(orjson.loads(sys.stdin.buffer.readline()), sys.stdin.buffer, answers)

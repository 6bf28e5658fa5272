"""Deploying a version of a model to a worker that runs, and seeing which versions it has."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner
from support.worker_process import WorkerProcess

from attributary_agents.cli.main import cli


def deploy(worker: WorkerProcess, *arguments: str) -> dict[str, Any]:
    """Run `attributary models deploy`; return what it prints as JSON."""
    done = CliRunner().invoke(cli, ["models", "deploy", "-c", str(worker.config_path), "--json", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def versions(worker: WorkerProcess) -> dict[str, str]:
    """Model id to the version that the worker's metrics name."""
    info = worker.samples("attributary_model_info")
    return {dict(labels)["model_id"]: dict(labels)["version"] for labels in info}

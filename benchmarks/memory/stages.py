"""Starts as a worker does, without Kafka, and prints as JSON what is resident after each stage.

    python benchmarks/memory/stages.py '{"kafka": ..., "models": ...}'

Each stage imports what a worker imports anyway: first
what others need too. What others have imported before counts for them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # `benchmarks` is a package of its own checkout only
    sys.path[0] = str(Path(__file__).parents[2])

from benchmarks.process import resident

_STANDARD = "asyncio ctypes dataclasses email.message html http.server inspect json logging.config pickle ssl typing"

MODULES = {
    "Python's own libraries": _STANDARD,
    "numpy": "numpy numpy.random numpy.linalg",
    "our topics, orjson": "attributary_topics",
    "scipy.special": "scipy.special",
    "pydantic, yaml": "pydantic yaml",
    "prometheus_client": "prometheus_client prometheus_client.core prometheus_client.exposition",
    "click, rich": "click rich.console rich.progress",
    "aiokafka": "aiokafka",
    "aiohttp": "aiohttp.web",
    "Faust": "faust.tables.manager faust.transport.drivers.aiokafka",
    "River, our packages": "attributary_agents.cli attributary_agents.run",
}
"""What is imported, in this order: River by the command itself, which leaves out some of it."""

READY = "the model, tried"
INTERPRETER = "the interpreter"


def main(text: str) -> None:
    """Import, make ready, print."""
    stages: list[dict[str, Any]] = []

    def note(stage: str, work: Callable[[], object]) -> None:
        began = time.process_time()
        work()
        stages.append({"stage": stage, "cpu_s": time.process_time() - began, **asdict(resident())})

    note(INTERPRETER, lambda: None)
    for stage, names in MODULES.items():
        note(stage, lambda names=names: _import(names.split()))  # type: ignore[misc]
    note(READY, lambda: _make_ready(json.loads(text)))
    print(json.dumps(stages))


def _import(names: list[str]) -> None:
    for name in names:
        import_module(name)


def _make_ready(config: dict[str, Any]) -> None:
    from attributary_agents.config.reading import parse_config
    from attributary_agents.models.trial import check_models

    check_models(parse_config(config))


if __name__ == "__main__":
    main(sys.argv[1])

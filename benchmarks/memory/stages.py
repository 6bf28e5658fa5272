"""Starts as a worker does, without Kafka, and prints as JSON what is resident after each stage.

    python benchmarks/memory/stages.py '{"kafka": ..., "models": ...}'

Runs with the packages of any checkout, which PYTHONPATH names. Each stage imports what a worker imports anyway: first
what others need too. What others have imported before counts for them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # `benchmarks` is a package of its own checkout only
    sys.path[0] = str(Path(__file__).parents[2])

from benchmarks.memory.resident import resident

_RIVER = "metrics stats tree forest ensemble linear_model naive_bayes neighbors preprocessing compose drift bandit"
_STANDARD = "asyncio ctypes dataclasses email.message html http.server inspect json logging.config pickle ssl typing"

MODULES = {
    "Python's own libraries": _STANDARD,
    "numpy": "numpy numpy.random numpy.linalg",
    "our topics, orjson": "attributary_topics",
    "scipy.special": "scipy.special",
    "scipy.stats and others, for River": "scipy.stats scipy.io.arff scipy.ndimage scipy.integrate",
    "scikit-learn and pandas, for River": "sklearn.utils",
    "River": " ".join(f"river.{name}" for name in _RIVER.split()),
    "our explainers": "attributary_explainers",
    "pydantic, yaml": "pydantic pydantic_settings yaml",
    "prometheus_client": "prometheus_client prometheus_client.core prometheus_client.exposition",
    "click, rich": "click rich.console rich.progress",
    "aiokafka": "aiokafka",
    "aiohttp": "aiohttp.web",
    "Faust": "faust.tables.manager faust.transport.drivers.aiokafka",
    "our agents": "attributary_agents.cli attributary_agents.run",
}
"""What is imported, in this order."""

DEFERRED = {
    "scipy.stats and others, for River": "scipy.stats",
    "scikit-learn and pandas, for River": "sklearn",
}
"""Stages that a checkout has only where its worker imports the module."""

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
        if stage in DEFERRED and (_is_deferred(DEFERRED[stage]) or find_spec(DEFERRED[stage].split(".")[0]) is None):
            continue
        note(stage, lambda names=names: _import(names.split()))  # type: ignore[misc]
    note(READY, lambda: _make_ready(json.loads(text)))
    print(json.dumps(stages))


def _lean() -> Any:
    """Return the module that leaves out what is not used; None in a checkout without it."""
    found = find_spec("attributary_agents.lean_imports")
    return found and import_module("attributary_agents.lean_imports")


def _is_deferred(module: str) -> bool:
    lean = _lean()
    return lean is not None and module in lean.BESIDE_RIVER


def _import(names: list[str]) -> None:
    lean = _lean() if names[0].startswith(("scipy", "river")) else None
    with nullcontext() if lean is None else lean.deferred(lean.BESIDE_RIVER):
        for name in names:
            import_module(name)


def _make_ready(config: dict[str, Any]) -> None:
    from attributary_agents.allocator import bound_heaps
    from attributary_agents.config.reading import parse_config
    from attributary_agents.models.trying import check_models

    bound_heaps()
    check_models(parse_config(config))


if __name__ == "__main__":
    main(sys.argv[1])

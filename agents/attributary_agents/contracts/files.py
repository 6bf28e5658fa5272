"""The contracts as files."""

from __future__ import annotations

import json
from importlib.util import find_spec

from ..config.settings import Config
from .asyncapi import asyncapi
from .schemas import schemas

OPENAPI = "openapi.json"
"""The description of what `attributary serve` answers; it is made where the extra `serve` is installed."""


def contract_files(config: Config) -> dict[str, str]:
    """Return name and content of each contract file.

    The files are AsyncAPI, OpenAPI where the extra `serve` is installed, and a JSON Schema of each kind of record.
    """
    made = {"asyncapi.json": asyncapi(config)}
    if can_describe_rest():
        from ..serve.http.app import make_api  # which takes a second, and needs the extra

        made[OPENAPI] = make_api().openapi()
    made |= {f"{kind}.schema.json": schema for kind, schema in schemas().items()}
    return {name: json.dumps(data, indent=2, ensure_ascii=False) + "\n" for name, data in made.items()}


def can_describe_rest() -> bool:
    """Return whether the packages of the extra `serve` are installed."""
    return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))

"""The contracts as files."""

from __future__ import annotations

import json

from ..config.settings import Config
from .asyncapi import asyncapi
from .schemas import schemas


def contract_files(config: Config) -> dict[str, str]:
    """Return name and content of each file: the AsyncAPI document, and a JSON Schema of each kind of record."""
    made = {"asyncapi.json": asyncapi(config)}
    made |= {f"{kind}.schema.json": schema for kind, schema in schemas().items()}
    return {name: json.dumps(data, indent=2, ensure_ascii=False) + "\n" for name, data in made.items()}

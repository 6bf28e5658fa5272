"""The OpenAPI document: FastAPI's, with a single form of problems."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

_TEXT = (
    "Reads what explainers of models have published. All requests only read; answers have an `ETag`. What is wrong "
    "with a request is said as RFC 9457 has it, with a `suggestion`. Unknown parameters are refused. Where the server "
    "asks for a token, send it as `Authorization: Bearer TOKEN`, or as the password of any name."
)


def describe(api: FastAPI) -> None:
    """Make an application serve this document in place of FastAPI's own."""

    def document() -> dict[str, Any]:
        if api.openapi_schema is None:
            api.openapi_schema = made(api)
        return api.openapi_schema

    api.openapi = document  # type: ignore[method-assign]


def made(api: FastAPI) -> dict[str, Any]:
    """Return the document of an application."""
    found = get_openapi(title="Attributary", version=version("attributary"), description=_TEXT, routes=api.routes)
    for path in found["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                parameter["schema"] = _of_parameter(parameter["schema"])
            operation["security"] = [{}, {"token": []}]
            for answer in operation["responses"].values():
                if "application/problem+json" in answer.get("content", {}):
                    answer["content"].pop("application/json", None)
                    answer["content"]["application/problem+json"] = {"schema": _ref("Problem")}
    components = found["components"]
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return found


def _of_parameter(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, without null.

    A parameter that is not given is left out, and is never null.
    """
    kinds = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    said = {name: part for name, part in schema.items() if name not in ("title", "description")}
    if len(kinds) != 1:
        return said
    return {**{name: part for name, part in said.items() if name != "anyOf"}, **kinds[0]}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}

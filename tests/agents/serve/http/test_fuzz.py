"""Whatever the OpenAPI document allows, and what it does not, is answered as it says, and never by a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode, checks
from starlette.types import ASGIApp

from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.page import Page
from attributary_agents.serve.store.store import Store
from tests.agents.serve.http.sites import asked, configured, filled, site_with

MODELS = ("bank", "a/b %2F ü", "wide")
INCIDENTS = tuple(f"{name}:c" for name in MODELS)
MOMENTS = tuple(f"{name}@{at}" for name in MODELS for at in ("now", "#500", "2026-01-01T10:00", "#0", "1970-01-01"))
SHORTEST_LIMIT = 100
"""Characters that every parameter allows for which a known value is put in; `explainer` allows the fewest."""
SKIPPED = (
    checks.positive_data_acceptance,  # there may be no such model, and a window may end before it begins
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with filled(*MODELS, features=30) as made:
        yield made


@pytest.fixture(scope="module")
def app(store: Store) -> ASGIApp:
    return make_app(site_with(store, config=configured(host="testserver")), Page("1"))


@pytest.fixture(scope="module")
def api(app: ASGIApp) -> Any:
    found = schemathesis.openapi.from_asgi("/api/openapi.json", app)

    @found.hook
    def map_path_parameters(context: Any, path_parameters: dict[str, Any] | None) -> dict[str, Any] | None:
        """Ask for what there is every other time: an id that is made up is hardly ever one."""
        if not path_parameters:
            return path_parameters
        known = {"model_id": MODELS, "incident_id": INCIDENTS}
        return {name: _known(value, known.get(name, ())) for name, value in path_parameters.items()}

    @found.hook
    def map_query(context: Any, query: dict[str, Any] | None) -> dict[str, Any] | None:
        known = {"a": MOMENTS, "b": MOMENTS, "model": MODELS, "explainer": ("pfi",)}
        return query and {name: _known(value, known.get(name, ())) for name, value in query.items()}

    return found


def _known(value: Any, choices: tuple[str, ...]) -> Any:
    # What is refused for its length stays as it is: mended, it would be a request that is to fail and does not.
    if not choices or not isinstance(value, str) or not 1 <= len(value) <= SHORTEST_LIMIT:
        return value
    place = sum(map(ord, value))
    return choices[place % len(choices)] if place % 3 else value


PATHS = (
    "/api/v1/annotations",
    "/api/v1/compare",
    "/api/v1/health",
    "/api/v1/incidents",
    "/api/v1/incidents/{incident_id}",
    "/api/v1/models",
    "/api/v1/models/{model_id}",
    "/api/v1/models/{model_id}/dead-letters",
    "/api/v1/models/{model_id}/dependences",
    "/api/v1/models/{model_id}/importances",
    "/api/v1/models/{model_id}/incidents",
)
"""All but the stream, which has no end."""

LONG = [
    (path, mode)
    for path in PATHS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or path != "/api/v1/health"
]
"""What is allowed and what is not; health has no parameter that could be wrong."""


def check(api: Any, path: str, mode: GenerationMode, n: int) -> None:
    @settings(
        max_examples=n,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
        derandomize=True,
        database=None,
    )
    @given(case=api[path]["GET"].as_strategy(generation_mode=mode))
    def is_as_it_says(case: schemathesis.Case) -> None:
        response = case.call()
        case.validate_response(response, excluded_checks=list(SKIPPED))

    is_as_it_says()


@pytest.mark.parametrize("path", PATHS)
def test_the_interface_is_as_its_document_says(api: Any, path: str) -> None:
    check(api, path, GenerationMode.POSITIVE, 8)


@pytest.mark.long
@pytest.mark.parametrize(("path", "mode"), LONG)
def test_the_interface_is_as_its_document_says_for_long(api: Any, path: str, mode: GenerationMode) -> None:
    check(api, path, mode, 100)


def test_no_route_is_left_out(api: Any) -> None:
    assert set(api.raw_schema["paths"]) == {*PATHS, "/api/v1/stream"}


def test_what_is_asked_here_is_there() -> None:
    """The ids that are put in are those of the store, so that more than refusals are checked."""
    with filled(*MODELS) as store:
        (response,) = asked(site_with(store), Page("1"), "/api/v1/models")
    assert {row["model_id"] for row in response.json()["models"]} == set(MODELS)

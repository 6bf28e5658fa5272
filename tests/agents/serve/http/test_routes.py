"""What the REST interface answers: any id, bounds, tags, packing, and what it says of a wrong question."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from attributary_agents.serve.answers import (
    Comparison,
    DeadLetters,
    DependenceList,
    Fleet,
    Health,
    IncidentList,
    IncidentView,
    ModelView,
    Series,
)
from attributary_agents.serve.http.app import make_app
from attributary_agents.serve.http.site import Site
from attributary_agents.serve.page import Page
from attributary_agents.serve.store.store import Store
from tests.agents.serve.http.sites import NOW_MS, READ, asked, client, filled, importance, page_of, site_with

ODD = (
    "a/b",
    "a%2Fb",
    "%",
    "a b+c",
    "models/a/importances",
    "ä: ü € 漢字 🙂",
    "bank@now",
    "q?x=1&y=2#z",
    'it\'s "quoted" <b>',
    "x" * 249,
    "tab\tand\nline",
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with filled("bank", *ODD) as made:
        yield made


@pytest.fixture(scope="module")
def site(store: Store) -> Site:
    return site_with(store)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("page"))


@pytest.mark.parametrize("model_id", ODD)
def test_any_id_is_found_where_it_is_percent_encoded(site: Site, page: Page, model_id: str) -> None:
    at = f"/api/v1/models/{quote(model_id, safe='')}"
    moment = quote(f"{model_id}@now", safe="")
    view, series, incidents, letters, one, compared = asked(
        *(site, page, at, f"{at}/importances", f"{at}/incidents", f"{at}/dead-letters"),
        *(f"/api/v1/incidents/{quote(model_id + ':c', safe='')}", f"/api/v1/compare?a={moment}&b={moment}"),
    )
    assert ModelView.model_validate_json(view.content).row.model_id == model_id
    assert Series.model_validate_json(series.content).model_id == model_id
    assert [row.id for row in IncidentList.model_validate_json(incidents.content).incidents] == [f"{model_id}:c"]
    assert DeadLetters.model_validate_json(letters.content).n == 1
    assert IncidentView.model_validate_json(one.content).row.model_id == model_id
    assert Comparison.model_validate_json(compared.content).a.model_id == model_id


def test_each_route_answers_by_its_type(site: Site, page: Page) -> None:
    fleet, health, incidents, dependences, annotations = asked(
        *(site, page, "/api/v1/models?limit=3&q=b", "/api/v1/health", "/api/v1/incidents?limit=2&open=true"),
        *("/api/v1/models/bank/dependences", "/api/v1/annotations?model=bank"),
    )
    found = Fleet.model_validate_json(fleet.content)
    assert (len(found.models), found.now_ms) == (3, NOW_MS)
    assert Health.model_validate_json(health.content).last_event_ms == READ.last_event_ms
    assert len(IncidentList.model_validate_json(incidents.content).incidents) == 2
    assert DependenceList.model_validate_json(dependences.content).dependences == []
    (marked,) = annotations.json()
    assert set(marked) == {"id", "time", "timeEnd", "title", "text", "tags"}


def test_importances_are_those_of_the_window_that_is_asked_for(site: Site, page: Page) -> None:
    at = "/api/v1/models/bank/importances"
    whole, by_time, by_number, back, few = asked(
        *(site, page, at, f"{at}?from={NOW_MS - 90 * 60_000}&to={NOW_MS - 85 * 60_000}"),
        *(f"{at}?by=observation&from=500&to=700", f"{at}?window=85m", f"{at}?points=2&top=1"),
    )
    assert [Series.model_validate_json(one.content).n_events for one in (whole, by_time, by_number, back, few)] == [
        *(20, 6, 3, 6, 20)
    ]
    assert few.json()["features"][0]["feature"] == "f0"
    assert (len(few.json()["features"]), len(few.json()["time_ms"])) == (1, 2)


@pytest.mark.parametrize(
    ("path", "detail", "suggestion"),
    [
        ("/models/bnak", "No model 'bnak'.", "bank"),
        ("/models/bank%2Fx/importances", "No model 'bank/x'.", ""),
        ("/models/bank/importances?explainer=pif", "No explainer 'pif'.", "pfi"),
        ("/incidents/nothing", "No incident 'nothing'.", ""),
        ("/nothing", "there is nothing at '/api/v1/nothing'", "what there is stands in /api/openapi.json"),
        ("/models/", "there is nothing at '/api/v1/models/'", ""),
        ("/models/a/b", "there is nothing at '/api/v1/models/a/b'", ""),
        ("/models/bank/importances/", "there is nothing", ""),
    ],
)
def test_what_is_not_there_is_said_with_what_may_be_meant(
    site: Site, page: Page, path: str, detail: str, suggestion: str
) -> None:
    (response,) = asked(site, page, f"/api/v1{path}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    said = response.json()
    assert (said["type"], said["status"]) == ("about:blank", 404)
    assert said["detail"].startswith(detail)
    assert (said["suggestion"] or "").startswith(suggestion)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/models?limt=3", "did you mean 'limit'?"),
        ("/health?x=1", "it takes none"),
        ("/models?limit=3&limit=4", "limit is given 2 times"),
        ("/models?limit=0", "limit: Input should be greater than or equal to 1, got '0'"),
        ("/models?limit=1001", "limit: "),
        ("/models?window=2w", "window: expected all, or a duration from 1s to 3660d, such as 1h, 24h or 7d"),
        ("/models?window=1e9d", "window: "),
        ("/models?q=" + "x" * 201, "q: "),
        ("/models/bank?window=0s", "window: "),
        ("/models/%FF", "model_id: expected percent-encoded UTF-8"),
        ("/models/" + "x" * 2049, "model_id: "),
        ("/models/bank/importances?points=1", "points: "),
        ("/models/bank/importances?points=2001", "points: "),
        ("/models/bank/importances?points=2000&top=50", "ask for 400 points, or for fewer features"),
        ("/models/bank/importances?points=667&top=10&" + "&".join(f"features=a{i}" for i in range(20)), "ask for 666"),
        ("/models/bank/importances?top=51", "top: "),
        ("/models/bank/importances?" + "&".join(f"features=a{i}" for i in range(51)), "features: "),
        ("/models/bank/importances?features=" + "x" * 1001, "features: "),
        ("/models/bank/importances?by=week", "by: "),
        ("/models/bank/importances?from=-1", "from: "),
        ("/models/bank/importances?to=9007199254740992", "to: "),
        ("/models/bank/importances?from=NaN", "from: "),
        ("/models/bank/importances?from=5&to=4", "swap `from` and `to`"),
        ("/compare?a=bank@now", "b: it has to be given"),
        ("/compare?a=bank@yesterday&b=bank@now", "MODEL@now"),
        ("/incidents?open=perhaps", "open: "),
    ],
)
def test_a_parameter_that_is_unknown_or_out_of_bounds_is_refused(site: Site, page: Page, path: str, said: str) -> None:
    (response,) = asked(site, page, f"/api/v1{path}")
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert said in f"{response.json()['detail']} {response.json()['suggestion']}"
    assert len(response.content) < 2000


def test_the_largest_answers_that_may_be_asked_for_are_given(page: Page) -> None:
    with Store() as store:
        store.take([importance("wide", n, features=60) for n in range(1, 21)])
        site = site_with(store)
        many, fine = asked(
            site,
            page,
            *(f"/api/v1/models/wide/importances?{query}" for query in ("points=400&top=50", "points=2000&top=10")),
        )
    assert (many.status_code, fine.status_code) == (200, 200)
    assert len(many.json()["features"]) == 50
    assert many.json()["others"]["n"] == 10


def test_only_reading_is_possible(site: Site, page: Page) -> None:
    async def ask() -> None:
        async with client(make_app(site, page)) as http:
            for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                response = await http.request(method, "/api/v1/models")
                assert response.status_code == 405, method
                assert response.headers["allow"] == "GET"
                assert response.headers["content-type"] == "application/problem+json"
                assert "access-control-allow-origin" not in response.headers
            head = await http.head("/api/v1/health")
            full = await http.get("/api/v1/health")
            assert (head.status_code, head.content) == (200, b"")
            assert head.headers["etag"] == full.headers["etag"]
            assert (await http.head("/api/v1/stream")).status_code == 405

    asyncio.run(ask())


def test_an_answer_that_is_known_is_not_sent_again(page: Page) -> None:
    with filled("bank") as store:
        site = site_with(store)
        at = "/api/v1/models/bank/importances"
        (first,) = asked(site, page, at)
        tag = first.headers["etag"]
        for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
            (again,) = asked(site, page, at, **{"if-none-match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        (other,) = asked(site, page, at, **{"if-none-match": '"other"'})
        assert other.status_code == 200
        store.take([importance("bank", 21)])
        (changed,) = asked(site, page, at, **{"if-none-match": tag})
        assert (changed.status_code, changed.headers["etag"] == tag) == (200, False)
        assert changed.headers["cache-control"] == "private, no-cache"


def test_answers_are_packed_for_who_takes_that(site: Site, page: Page) -> None:
    at = "/api/v1/models/bank/importances"
    for accepted, is_packed in (
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip;q=0", False),
        ("br", False),
        ("", False),
    ):
        (response,) = asked(site, page, at, **{"accept-encoding": accepted})
        assert (response.headers.get("content-encoding") == "gzip") == is_packed, accepted
        assert response.json()["model_id"] == "bank"
        assert "Accept-Encoding" in response.headers["vary"]
    (small,) = asked(site, page, "/api/v1/health", **{"accept-encoding": "gzip"})
    assert "content-encoding" not in small.headers
    assert gzip.decompress(gzip.compress(small.content)) == small.content


def test_a_fault_is_told_without_what_it_holds(page: Page, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Store):
        def models(self):  # type: ignore[no-untyped-def]
            raise RuntimeError("secret value of a record")

    with Broken() as store:
        (response,) = asked(site_with(store), page, "/api/v1/models")
    assert response.status_code == 500
    assert response.headers["content-type"] == "application/problem+json"
    assert "secret" not in response.text + caplog.text
    assert "Traceback" not in response.text + caplog.text
    assert "RuntimeError in test_routes.py" in caplog.text


def test_the_server_counts_what_it_answers_by_few_classes(page: Page) -> None:
    with filled("bank") as store:
        site = site_with(store, reading=lambda: READ)
        asked(
            site, page, "/api/v1/models", "/api/v1/models/bnak", "/", "/models/x", f"{page.base}/js/main.js", "/livez"
        )
        assert site.requests == {
            ("api", 200): 1,
            ("api", 404): 1,
            ("page", 200): 2,
            ("static", 200): 1,
            ("own", 200): 1,
        }

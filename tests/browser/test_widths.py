"""Each view at the widths of a desk, a tablet and a phone, light and dark: axe, nothing cut, no scrolling sideways."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.browser.conftest import Visits, shown
from tests.browser.looks import cut_texts, findings, incident_of, settled, too_small, too_wide
from tests.browser.stand_in import StandIn
from tests.browser.stand_in.specs import LONG_ID

pytestmark = [pytest.mark.browser, pytest.mark.long]

MODELS = ("bank", "bikes", "fraud-a", "clicks", "wide", "letters", "newcomer", "stock-out", LONG_ID, "store-00011")
INCIDENTS = (
    ("bank", "inputs"), ("bank", "relies_differently"), ("bank", "version"), ("bikes", "harder"), ("bikes", "worse"),
    ("fraud-a", "worse"), ("wide", "worse"), ("clicks", "relies_differently"), (LONG_ID, "recovered"),
    (LONG_ID, "level"), ("store-00011", "changed"),
)  # fmt: skip
COMPARED = (
    "a=bank@%233000000&b=bank@now", "a=bank@now&b=bikes@now", "a=wide@%2320000&b=wide@now",
    f"a={LONG_ID}@now&b=newcomer@now", "a=bank@now&b=nobody@now",
)  # fmt: skip
SIZES = pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (768, "dark"), (390, "light")])


def looked(server: StandIn, visits: Visits, paths: Iterable[str], width: int, scheme: str) -> dict[str, list[str]]:
    """Return what is amiss with each path; none of those that are sound."""
    amiss: dict[str, list[str]] = {}
    page = visits.open(server, "/", width=width, scheme=scheme)
    for path in paths:
        page.goto(server.url + path)
        shown(page)
        settled(page)
        amiss[path] = [*findings(page), *cut_texts(page), *too_wide(page), *too_small(page)]
    return {path: found for path, found in amiss.items() if found}


@SIZES
def test_the_fleet_and_what_is_not_there(width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    assert looked(server, visits, ("/", "/?q=store", "/models/bnak", "/nowhere"), width, scheme) == {}


@SIZES
def test_models(width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    assert looked(server, visits, (f"/models/{model_id}" for model_id in MODELS), width, scheme) == {}


@SIZES
def test_incidents(width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    assert looked(server, visits, (incident_of(server, *one) for one in INCIDENTS), width, scheme) == {}


@SIZES
def test_comparisons(width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    assert looked(server, visits, (f"/compare?{query}" for query in COMPARED), width, scheme) == {}

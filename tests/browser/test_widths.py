"""Each view at the widths of a desk, a tablet and a phone, light and dark: axe, nothing cut, no scrolling sideways."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Visits
from tests.browser.looks import change_of, cut_texts, findings, settled, too_small, too_wide
from tests.browser.stand_in import StandIn
from tests.browser.stand_in.specs import LONG_ID

pytestmark = [pytest.mark.browser, pytest.mark.long]

MODELS = ("bank", "bikes", "fraud-a", "clicks", "wide", "letters", "newcomer", "stock-out", LONG_ID, "store-00011")
CHANGES = (
    ("bank", "explanation"), ("bank", "alarm"), ("bank", "importance_shift"), ("bank", "importance_shift_released"),
    ("bank", "loss_shift"), ("bank", "loss_shift_explained"), ("bank", "loss_shift_released"),
    ("bikes", "explanation"), ("bikes", "not_confirmed"), ("fraud-a", "alarm"), ("wide", "explanation"),
    ("letters", "explanation"), (LONG_ID, "recovered"), (LONG_ID, "loss_shift"),
)  # fmt: skip
COMPARED = (
    "a=bank@%233000000&b=bank@now", "a=bank@now&b=bikes@now", "a=wide@%2320000&b=wide@now",
    f"a={LONG_ID}@now&b=newcomer@now", "a=bank@now&b=nobody@now",
)  # fmt: skip
SIZES = pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (768, "dark"), (390, "light"), (390, "dark")])


def look(server: StandIn, visits: Visits, path: str, width: int, scheme: str) -> list[str]:
    page = visits.open(server, path, width=width, height=900, scheme=scheme)
    settled(page)
    return [*findings(page), *cut_texts(page), *too_wide(page), *too_small(page)]


@SIZES
@pytest.mark.parametrize("path", ["/", "/?q=store", "/models/bnak", "/nowhere"])
def test_the_fleet_and_what_is_not_there(path: str, width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    assert look(server, visits, path, width, scheme) == []


@SIZES
@pytest.mark.parametrize("model_id", MODELS)
def test_a_model(model_id: str, width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    assert look(server, visits, f"/models/{model_id}", width, scheme) == []


@SIZES
@pytest.mark.parametrize(("model_id", "event"), CHANGES)
def test_a_change(model_id: str, event: str, width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    assert look(server, visits, change_of(server, model_id, event), width, scheme) == []


@SIZES
@pytest.mark.parametrize("query", COMPARED)
def test_a_comparison(query: str, width: int, scheme: str, server: StandIn, visits: Visits) -> None:
    visits.tolerate("404")
    assert look(server, visits, f"/compare?{query}", width, scheme) == []

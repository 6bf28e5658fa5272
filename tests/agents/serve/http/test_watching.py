"""What the server says of itself at /metrics: every name of the catalogue with its labels, and its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from attributary_agents.serve.answers import WebhookCount
from attributary_agents.serve.http.monitoring import SERVE_METRICS
from tests.agents.serve.http.sites import READ, asked, filled, page_of, site_with

Samples = Mapping[tuple[str, ...], float]


def scraped(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


def test_every_metric_of_the_catalogue_is_there_with_its_value(tmp_path: Path) -> None:
    reading = replace(READ, n_read={"i": 7, "c": 2}, n_refused=3, read_share=0.5, broker="away")
    hooks = [WebhookCount(name="ops", sent=5, failed=1, last_failure=None)]
    with filled("bank") as store:
        site, page = site_with(store, reading=lambda: reading, webhooks=lambda: hooks), page_of(tmp_path)
        listener = site.feed.listen(None)
        asked(site, page, "/api/v1/models/bank", "/api/v1/models/bnak", "/livez")
        (response,) = asked(site, page, "/metrics")
        assert response.headers["content-type"].startswith("text/plain")
        found, size = scraped(response.text), float(store.size())
        site.feed.forget(listener)
    ours = {name: samples for name, samples in found.items() if name.startswith("attributary_")}
    assert ours == {
        "attributary_serve_records_total": {("c",): 2, ("i",): 7},
        "attributary_serve_refused_total": {(): 3},
        "attributary_serve_read_ratio": {(): 0.5},
        "attributary_serve_brokers_answer": {(): 0},
        "attributary_serve_store_bytes": {(): size},
        "attributary_serve_streams": {(): 1},
        "attributary_serve_requests_total": {("api", "200"): 1, ("api", "404"): 1, ("own", "200"): 1},
        "attributary_serve_webhooks_total": {("ops", "sent"): 5, ("ops", "failed"): 1},
    }
    assert set(ours) == {f"attributary_{name}" for name in SERVE_METRICS}
    assert "process_resident_memory_bytes" in found


def test_the_number_of_series_does_not_grow_with_models_or_with_what_is_asked(tmp_path: Path) -> None:
    with filled("a", "b", "c", n=1) as store:
        site, page = site_with(store), page_of(tmp_path)
        (before,) = asked(site, page, "/metrics")
        asked(site, page, *(f"/api/v1/models/{name}" for name in "abcdefghij"), *(f"/models/{n}" for n in range(20)))
        (after,) = asked(site, page, "/metrics")
    new = {
        (name, labels)
        for name, samples in scraped(after.text).items()
        for labels in samples
        if labels not in scraped(before.text).get(name, {})
    }
    assert {one for one in new if one[0].startswith("attributary_")} == {
        ("attributary_serve_requests_total", ("api", "200")),
        ("attributary_serve_requests_total", ("api", "404")),
        ("attributary_serve_requests_total", ("page", "200")),
        ("attributary_serve_requests_total", ("own", "200")),
    }

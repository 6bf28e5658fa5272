"""Monitoring of the server itself: liveness, readiness, metrics."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response

from .site import Site, site_of

PREFIX = "attributary_"

SERVE_METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "serve_records_total": ("Records that the page's server has read, by topic", ("topic",)),
    "serve_refused_total": ("Of these the ones that are not what workers write, and were passed over", ()),
    "serve_read_ratio": ("How far it has read what the topics had when it began; 1 is all", ()),
    "serve_brokers_answer": ("1 while brokers answer the page's server", ()),
    "serve_store_bytes": ("Size of its store", ()),
    "serve_streams": ("Pages that are open and told of what is new", ()),
    "serve_requests_total": (
        "Requests that it has answered, by class of route: api, page, static, stream, own",
        ("route", "status"),
    ),
    "serve_webhooks_total": ("Events for webhooks, by what became of them: sent, failed", ("name", "outcome")),
}
"""Names, help texts and labels: as `CATALOGUE`, of another process."""


class SiteCollector(Collector):
    """Collector of a server's metrics, in few series for any number of models."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of `SERVE_METRICS`, in its order."""
        site, reading, webhooks = self._site, self._site.reading(), self._site.webhooks()
        values: dict[str, list[tuple[tuple[str, ...], float]]] = {
            "serve_records_total": [((topic,), n) for topic, n in sorted(reading.n_read.items())],
            "serve_refused_total": [((), reading.n_refused)],
            "serve_read_ratio": [((), reading.read_share or 0.0)],
            "serve_brokers_answer": [((), float(reading.broker == "answers"))],
            "serve_store_bytes": [((), site.store.size())],
            "serve_streams": [((), len(site.feed))],
            "serve_requests_total": [((kind, str(status)), n) for (kind, status), n in sorted(site.requests.items())],
            "serve_webhooks_total": [
                ((one.name, outcome), n)
                for one in webhooks
                for outcome, n in (("sent", one.sent), ("failed", one.failed))
            ],
        }
        for name, (text, labels) in SERVE_METRICS.items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(PREFIX + name, text, labels=labels)
            for of, value in values[name]:
                family.add_metric(of, value)
            yield family


def watching_router(site: Site) -> APIRouter:
    """Return the routes by which a server is watched."""
    router = APIRouter(include_in_schema=False)
    registry = CollectorRegistry()
    registry.register(SiteCollector(site))
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)

    @router.get("/livez")
    async def livez() -> Response:
        return _text("alive")

    @router.get("/readyz")
    async def readyz(request: Request) -> Response:
        reason = why_not_ready(site_of(request))
        return _text(f"not ready: {reason}", 503) if reason else _text("ready")

    @router.get("/metrics")
    def metrics(request: Request) -> Response:
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    return router


def why_not_ready(site: Site) -> str:
    """Return why the page lags behind the topics; empty if it does not."""
    reading = site.reading()
    if reading.fault is not None:
        return reading.fault
    if reading.missing:
        return f"no topic {', '.join(reading.missing)} yet"
    if reading.is_reading_past:
        share = reading.read_share
        return "reading what the topics have" + ("" if share is None else f", {100 * share:.0f} % of it")
    return ""


def _text(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text + "\n", status, {"Cache-Control": "no-store"})

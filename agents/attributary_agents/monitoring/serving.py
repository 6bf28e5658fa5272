"""The metrics of `attributary serve`: names, help texts and labels. It is a process with a /metrics of its own."""

from __future__ import annotations

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
"""As `CATALOGUE`, of another process."""

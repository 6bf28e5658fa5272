"""Metrics and events of a model, for your own service and the worker.

`Monitor` is for a service that holds its model itself. `attributary_agents` uses the same parts: the metrics, the
limits on series, when an event is due, and what it contains. This package knows the wire format and Prometheus's
client, but no client of Kafka. Nothing else in `attributary_explainers` imports it.
"""

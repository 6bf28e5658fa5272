"""Metrics and events of a model, for your own service and the worker.

`Monitor` is for a service that holds its model itself. Its parts are those that `attributary_agents` uses, so that
there is one of each: which metrics there are and how many series, when an event is due, and what stands in it. It knows
the wire format and Prometheus's client, but no client of Kafka. Nothing else in `attributary_explainers` imports it.
"""

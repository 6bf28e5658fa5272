"""Prometheus rules and Grafana dashboards, generated from the metric catalogue."""

"""Monitoring of a worker: metrics, health, and pages about changes.

The metrics are for Prometheus.

May import `worker` and what that may import.
"""

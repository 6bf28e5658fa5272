"""Writes the recording and alerting rules for Prometheus.

May import `errors`.
"""

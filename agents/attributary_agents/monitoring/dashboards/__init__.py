"""Dashboards for Grafana.

May import `errors`.
"""

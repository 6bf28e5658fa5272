"""Recording and alerting rules for Prometheus.

May import `errors`.
"""

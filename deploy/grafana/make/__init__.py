"""Makes the Grafana dashboards from the metric catalogue: `make dashboards-json`.

Not part of the package: the wheel holds the JSON files. May import `attributary_agents.monitoring.metrics`.
"""

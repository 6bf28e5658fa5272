"""Pictures of the Grafana dashboards' panels with real data: `python -m benchmarks.dashboards`."""

"""Harness that tests and benchmarks share: Kafka, Prometheus, Compose, workers as processes."""

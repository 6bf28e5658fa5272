"""The tables and figures of the papers behind the explainers, run again: `python -m benchmarks.papers`."""

"""Replays the observations of a file through the worker's own function, without Kafka, and writes a report.

May import `monitoring`, `worker` and what these may import.
"""

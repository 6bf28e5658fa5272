"""Replay: the observations of a file through the same function as a worker's, without Kafka, with a report.

May import `monitoring`, `worker` and what these may import.
"""

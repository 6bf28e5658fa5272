"""Replay of a file's observations without Kafka, with a report.

The observations go through the worker's own function.

May import `monitoring`, `worker` and what these may import.
"""

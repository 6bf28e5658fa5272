"""Explains model changes: detectors, alarms, verdicts and importances.

May import `batch`, `incremental` and what these may import.
"""

"""Explains model changes: detectors, alarms, the reference model, discrepancy and the change in importance.

May import `batch`, `incremental` and what these may import.
"""

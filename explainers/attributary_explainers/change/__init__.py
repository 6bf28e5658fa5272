"""Model change: detectors, alarms, the reference model, expected discrepancy and the change in importance.

May import `batch`, `incremental` and what these may import.
"""

"""What a worker shows: Prometheus metrics, health, and pages about changes.

May import `worker` and what that may import.
"""

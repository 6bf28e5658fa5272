"""Bounds what strangers take: connections, waits, and requests that work at the same time."""

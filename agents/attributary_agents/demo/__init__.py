"""The demonstration: its brokers, streams that drift, a live view.

May import `replay`, `kafka` and what these may import.
"""

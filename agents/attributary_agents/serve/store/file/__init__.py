"""Knows the file of the store: its tables, its lock, its connections, and what is done about one that is damaged."""

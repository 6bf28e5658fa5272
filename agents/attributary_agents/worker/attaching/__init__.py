"""Reads what comes from topics that are not ours: mapped records, and such a topic itself."""

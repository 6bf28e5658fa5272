"""Attaches topics that are not ours: reads their records, maps them to observations and labels, and copies these."""

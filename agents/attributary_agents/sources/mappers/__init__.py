"""Reads the records of topics that are not ours, merges them by time, and writes what is made of them to ours."""

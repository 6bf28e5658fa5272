"""Reads events and dead letters from their topics, and sends dead letters again, for the command line."""

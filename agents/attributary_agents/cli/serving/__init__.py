"""Holds the commands of the page: its server, and the addresses that it tells."""

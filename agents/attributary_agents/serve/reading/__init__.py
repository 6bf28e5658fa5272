"""Reads the output topics of the whole group into the store, from where it has read to on, and tells what is new."""

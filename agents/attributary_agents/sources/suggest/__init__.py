"""Suggestions of a source's section from sampled records, with reasons."""

"""Checks of attributary_topics."""

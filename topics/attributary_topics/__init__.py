"""Attributary."""

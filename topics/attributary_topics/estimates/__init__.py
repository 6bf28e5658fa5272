"""Holds estimates that workers publish beside importances: those of shards, and partial dependence."""

"""Keeps frozen models, and observations with two models' predictions."""

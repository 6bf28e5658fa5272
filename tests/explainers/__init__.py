"""Oracles and checks of attributary_explainers."""

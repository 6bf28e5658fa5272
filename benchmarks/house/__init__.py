"""Measures the product's own code: what an explanation passes, and which mistakes on purpose no test sees."""

"""Measures `Quality`: how near it is to exact values, and what it costs beside River's own metrics."""

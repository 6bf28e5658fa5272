"""Trained models of other libraries: what one call for all rows of an observation saves beside a call per row."""

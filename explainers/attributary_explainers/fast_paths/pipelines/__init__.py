"""Fast paths of pipelines, their transformers and linear models.

May import what `fast_paths` may.
"""

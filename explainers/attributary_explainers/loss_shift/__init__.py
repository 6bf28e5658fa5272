"""The route `loss`: whether a model has become worse, how, and since when.

What is public is exported by `attributary_explainers`.
"""

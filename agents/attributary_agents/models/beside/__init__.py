"""Explainers of a model that remove nothing: mean decrease in impurity (mdi), and partial dependence (pdp).

They stand beside the explainers by removal, whose rows are evaluated together: mdi asks the model nothing, and pdp asks
about rows of its own.
"""

"""Explainers that remove no feature: impurity (mdi), dependence (pdp).

mdi is the mean decrease in impurity, pdp the partial dependence. They stand beside the explainers by removal, whose
rows are evaluated together: mdi asks the model nothing, and pdp asks about rows of its own.
"""

"""Forests as sums over their leaves: exact importances of a data set, over all pairs of its rows.

May import `models` and what that may import. It reads scikit-learn's and River's trees and imports neither's modules of
trees: what a forest is, its type says.
"""

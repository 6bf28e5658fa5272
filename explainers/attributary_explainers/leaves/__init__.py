"""Forests as sums over leaves: exact importances over all pairs of rows.

May import `models` and what that may import. It reads scikit-learn's and River's trees and imports neither's modules of
trees: a model's type tells what it is.
"""

"""Measures the house itself: its import graph, its walks, its lines, and whether two checkouts publish the same bytes.

Works on any checkout, whatever its folders are: nothing here names a submodule of the product.
"""

"""Kernels that draw removed features given those that are kept.

May import what `imputers` may.
"""

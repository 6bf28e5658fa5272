"""Incremental explainers: iPFI, iSAGE, MDI and iPDP, alone or together.

May import `models`, `removal`, `losses`, `smoothing` and what these may import.
"""

"""Incremental explainers: iPFI, iSAGE, MDI and iPDP, alone or together.

May import `models`, `imputers`, `losses`, `smoothing` and what these may import.
"""

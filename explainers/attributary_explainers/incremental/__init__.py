"""Incremental explainers: iPFI, iSAGE, MDI and iPDP, and several of them on one evaluation of the model.

May import `models`, `imputers`, `losses`, `smoothing` and what these may import.
"""

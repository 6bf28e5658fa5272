"""Importance of a data set: PFI and SAGE by sampling, exactly by enumeration, and over windows.

May import `incremental`, `leaves` and what that may import.
"""

"""PFI and SAGE of a data set: by sampling, exactly, and over windows.

May import `incremental`, `leaves` and what that may import.
"""

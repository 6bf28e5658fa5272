"""How objects are shown, copied, pickled, fed with rows and tabulated.

May import errors, typing, wording, ranking and predictions; the objects themselves are above it.
"""

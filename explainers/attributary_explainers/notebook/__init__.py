"""What a notebook asks of every object: how it is shown, copied, pickled, fed with rows and turned into a data frame.

May import errors, typing, wording, ranking and predictions; the objects themselves are above it.
"""

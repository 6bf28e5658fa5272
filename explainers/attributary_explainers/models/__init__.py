"""Model adapters: they turn whatever the user has into the one function that an explainer calls.

May import `fast_paths`, `evaluation`, `losses`, `predictions` and what these may import. It knows River and scikit-
learn, and in `trained` what other libraries make.
"""

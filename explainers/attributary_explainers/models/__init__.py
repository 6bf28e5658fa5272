"""Model adapters: turn any model into the function explainers call.

May import `fast_paths`, `evaluation`, `losses`, `predictions` and what these may import. It knows River and scikit-
learn, and in `trained` what other libraries make.
"""

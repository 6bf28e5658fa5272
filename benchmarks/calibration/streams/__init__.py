"""Streams whose exact curves or importances are known; may import `attributary_explainers` and River alone."""

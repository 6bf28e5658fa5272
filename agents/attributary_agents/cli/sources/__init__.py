"""`attributary sources`: what attaches topics that are not ours."""

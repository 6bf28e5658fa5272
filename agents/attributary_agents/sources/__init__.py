"""Sources: mapping of foreign topics to observations and labels of ours.

Their records are read, mapped, and copied to our topics.
"""

"""Store of the output topics' records in SQLite.

It is a cache, bounded by age and size, and can be rebuilt from the topics.
"""

"""Keeps what the output topics have said in SQLite: a cache, bounded by age and size, rebuilt from the topics."""

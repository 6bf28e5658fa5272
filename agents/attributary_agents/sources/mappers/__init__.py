"""Mappers: foreign topics read, merged by time, and written to ours."""

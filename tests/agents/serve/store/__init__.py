"""The store against plain lists and dicts, and against what becomes of files."""

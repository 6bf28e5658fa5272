"""Worker: record handling, state storage and offset commits.

May import `state`, `models`, `kafka`, `config` and `errors`.
"""

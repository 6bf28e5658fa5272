"""The configuration: its schema, its file and its environment variables.

May import `errors`.
"""

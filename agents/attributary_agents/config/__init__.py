"""The configuration: its schema, and how files and environment variables become one.

May import `errors`.
"""

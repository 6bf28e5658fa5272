"""Events and dead letters on their topics, for the command line.

Both are read, and dead letters are sent again.
"""

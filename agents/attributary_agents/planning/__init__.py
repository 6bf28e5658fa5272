"""Planning: the workers and memory that a load needs.

A plan follows from the cost of a record on this machine.

May import `rehearsal` and what that may import.
"""

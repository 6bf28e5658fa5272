"""Reader of the whole group's output topics into the store.

It goes on from where the store has read to, and tells pages of new events.
"""

"""Merging of the reports of the shards of sharded models.

Done at the owner of the partition on which the reports come together.
"""

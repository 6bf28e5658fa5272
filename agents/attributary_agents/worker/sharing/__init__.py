"""Merges what the shards of sharded models say, at the owner of the partition on which it comes together."""

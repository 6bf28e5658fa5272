"""Workers that are forked from a process in which everything is imported already."""
